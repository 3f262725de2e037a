package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"gocloud.dev/gcerrors"

	"github.com/servegrid/servegrid/simcore/files"
)

// Error is why something in storage could not be done. It holds nothing secret.
type Error struct {
	// Doing says what was tried, such as "read". Where names the object or folder.
	Doing, Where string
	// Kind is what happened, if that is known: [fs.ErrNotExist], [fs.ErrPermission], [ErrNoCredentials], or nil.
	Kind error
	// text says why.
	text      string
	temporary bool
}

// ErrNoCredentials says that the environment holds no credentials.
var ErrNoCredentials = errors.New("no credentials")

// Error says what could not be done, why, and what to do.
func (e *Error) Error() string { return fmt.Sprintf("%s cannot be %s: %s", e.Where, e.Doing, e.text) }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Temporary reports whether the same may succeed later: the storage did not answer, or not as it should.
func (e *Error) Temporary() bool { return e.temporary }

// explain makes an error of one of a driver, whose text may hold anything.
func explain(doing string, l Location, err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled):
		return err
	}
	e := &Error{Doing: doing, Where: l.String()}
	text := redact(err.Error())
	server, why, away := unanswered(err)
	file := new(fs.PathError)
	switch {
	case unfit(text) != "":
		e.text = unfit(text)
	case isWithoutCredentials(text):
		e.Kind, e.text = ErrNoCredentials, "there are no credentials in the environment: set "+files.Credentials(l.Scheme)
	case isWithoutBucket(text):
		e.Kind, e.text = fs.ErrNotExist, fmt.Sprintf("there is no bucket %s: make it, or correct the name, the region or the endpoint", l.Bucket)
	case errors.Is(err, errNotInBuild):
		e.text = errNotInBuild.Error()
	case isMissing(err) && doing == "written" && errors.As(err, &file): // its folder cannot be made
		e.text = redact(file.Error())
	case isMissing(err):
		e.Kind, e.text = fs.ErrNotExist, "there is no such object"+l.fleeting()
	case isDenied(err):
		e.Kind, e.text = fs.ErrPermission, "access is denied: the credentials in the environment lack the permission"
		if v := files.Credentials(l.Scheme); v != "" {
			e.text += ", or are not meant for it; they come from " + v
		}
	case away:
		e.text, e.temporary = fmt.Sprintf("%s does not answer (%s): check that it runs and can be reached from here%s", server, why, endpoints[l.Scheme]), true
	case errors.As(err, &file):
		e.text, e.temporary = redact(file.Error()), !isFinal(err)
	default:
		e.text, e.temporary = text, doing != "opened" && !isFinal(err) // opening reads the environment only
	}
	return e
}

func isMissing(err error) bool {
	return gcerrors.Code(err) == gcerrors.NotFound || errors.Is(err, fs.ErrNotExist)
}

const noRegion = "the region is missing or malformed: set AWS_REGION, such as AWS_REGION=us-east-1"

// unfit says what to set in the environment when a driver complains about it; "" when it does not.
func unfit(text string) string {
	for _, u := range []struct{ sign, text string }{
		{"Invalid region", noRegion}, {"A region must be set", noRegion}, {"invalid input region", noRegion},
		{"failed to get shared config profile", "there is no profile of that name in the configuration of AWS: correct AWS_PROFILE, or the profile in the URL"},
		{"Options.AccountName is required", "no storage account is given: set " + files.Credentials("azblob")},
	} {
		if strings.Contains(text, u.sign) {
			return u.text
		}
	}
	return ""
}

// endpoints say what else to check when a server does not answer: where its address comes from.
var endpoints = map[string]string{
	"s3":     ", and the endpoint in the URL or AWS_ENDPOINT_URL_S3",
	"gs":     ", and STORAGE_EMULATOR_HOST",
	"azblob": ", and AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_DOMAIN",
}

// unanswered reports whether no connection to a server could be made, to which one, and why.
func unanswered(err error) (server, why string, away bool) {
	request, dial := new(url.Error), new(net.OpError)
	if !errors.As(err, &request) || !errors.As(err, &dial) || dial.Op != "dial" {
		return "", "", false
	}
	if u, err := url.Parse(request.URL); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	name, number := new(net.DNSError), syscall.Errno(0)
	switch {
	case errors.As(dial.Err, &name):
		return server, name.Err, true
	case errors.As(dial.Err, &number):
		return server, number.Error(), true
	}
	return server, dial.Err.Error(), true
}

func isWithoutCredentials(text string) bool {
	for _, sign := range []string{
		"no EC2 IMDS role found", "failed to refresh cached credentials", "get credentials:", "static credentials are empty", // AWS
		"could not find default credentials",                                          // GCS
		"DefaultAzureCredential: failed", "storage account name", "AZURE_STORAGE_ACC", // Azure
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

func isDenied(err error) bool {
	text := err.Error()
	return gcerrors.Code(err) == gcerrors.PermissionDenied || errors.Is(err, fs.ErrPermission) || strings.Contains(text, "Forbidden") ||
		strings.Contains(text, "StatusCode: 403") || strings.Contains(text, "Response Status: 403") || strings.Contains(text, "AuthenticationFailed")
}

func isWithoutBucket(text string) bool {
	for _, sign := range []string{"NoSuchBucket", "ContainerNotFound", "bucket does not exist", "bucket doesn't exist", "The specified container does not exist"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// secretVariables are those whose values must never be shown.
var secretVariables = []string{
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_CLIENT_SECRET", "AZURE_PASSWORD",
	"GOOGLE_APPLICATION_CREDENTIALS_JSON",
}

var (
	queryOfURL = regexp.MustCompile(`(https?://[^\s?"']+)\?[^\s"']*`)
	userOfURL  = regexp.MustCompile(`(https?://)[^\s/@"']+@`)
	signatures = regexp.MustCompile(`(?i)(signature|sig|sharedkey|accountkey|token|secret|credential|authorization)(["']?\s*[=:]\s*["']?)[^\s&"',;]+`)
	breaks     = regexp.MustCompile(`\s*[\r\n]\s*`)
)

// redact makes one line of what a driver says, without what is or may be secret.
func redact(text string) string {
	for _, name := range secretVariables {
		if value := os.Getenv(name); len(value) >= 4 {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	text = queryOfURL.ReplaceAllString(text, "$1?...")
	text = userOfURL.ReplaceAllString(text, "$1***@")
	text = signatures.ReplaceAllString(text, "$1$2***")
	return shortened(strings.TrimSpace(breaks.ReplaceAllString(text, " ")))
}

// attempts and firstPause say how often something is tried and how long the first pause is; each is twice the one before.
const (
	attempts   = 6
	firstPause = 100 * time.Millisecond
)

// retry does something until it succeeds, fails for a reason that trying again does not change, or has failed too often. A server
// that has never answered is more likely misnamed than away for a moment, and is tried once.
func (s *Store) retry(ctx context.Context, do func() error) error {
	pause := s.pause
	for n := 1; ; n++ {
		err := do()
		if _, _, away := unanswered(err); !away {
			s.answered.Store(true)
		} else if !s.answered.Load() {
			return err
		}
		if err == nil || n == attempts || isFinal(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// isFinal reports whether trying again is of no use.
func isFinal(err error) bool {
	var known *Error
	if errors.As(err, &known) {
		return true
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound, gcerrors.PermissionDenied, gcerrors.InvalidArgument, gcerrors.Unimplemented, gcerrors.AlreadyExists:
		return true
	}
	text := err.Error()
	return errors.Is(err, errNotInBuild) || errors.Is(err, syscall.ENOTDIR) || unfit(text) != "" || isWithoutCredentials(text) || isWithoutBucket(text) || isDenied(err)
}
