package storage

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/files"
)

// InstallFull is the command that installs the program with everything in it.
const InstallFull = "go install -tags full github.com/servegrid/servegrid/cmd/servegrid@latest"

// Location is an object or a folder in a bucket.
type Location struct {
	// Scheme says which kind of storage: file, mem, s3, gs or azblob. Bucket is empty for file.
	Scheme, Bucket string
	// Key is the object's name, or the folder's, without slashes around it.
	Key string
	// parameters say how to reach the bucket.
	parameters url.Values
}

// Parse reads a URL such as s3://bucket/folder/file?region=eu-central-1. What may be secret is refused; see [files.CheckURL].
func Parse(raw string) (Location, error) {
	if err := files.CheckURL(raw); err != nil {
		return Location{}, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return Location{}, err
	}
	l := Location{Scheme: u.Scheme, Bucket: u.Host, Key: strings.Trim(path.Clean("/"+u.Path), "/"), parameters: u.Query()}
	if l.Scheme == "file" {
		l.Bucket = ""
	}
	return l, nil
}

// CheckPath refuses a path that somebody gives and that is a URL but for one slash, such as s3:/bucket/x: it would be a folder of
// this machine with the name s3:.
func CheckPath(path string) error {
	scheme, rest, found := strings.Cut(path, ":/")
	if !found || strings.HasPrefix(rest, "/") || !slices.Contains(files.Schemes(), strings.ToLower(scheme)) {
		return nil
	}
	mark := "://"
	if strings.EqualFold(scheme, "file") {
		mark = ":///"
	}
	url := files.Shown(scheme + mark + rest)
	return fmt.Errorf("%s is a path of this machine and looks like a URL that lacks a slash: write %s, or ./ before it if it is the path", strings.Replace(url, mark, ":/", 1), url)
}

// String is the URL. It holds nothing secret.
func (l Location) String() string {
	u := url.URL{Scheme: l.Scheme, Host: l.Bucket, Path: "/" + l.Key}
	text := u.String()
	if l.Scheme == "file" {
		text = "file://" + u.EscapedPath()
	}
	if len(l.parameters) > 0 {
		text += "?" + l.parameters.Encode()
	}
	return text
}

// bucketURL is the URL of the bucket alone.
func (l Location) bucketURL() string {
	l.Key = ""
	return strings.Replace(l.String(), l.Bucket+"/", l.Bucket, 1)
}

// Join returns what lies below a folder.
func (l Location) Join(names ...string) Location {
	l.Key = strings.Trim(path.Clean("/"+path.Join(append([]string{l.Key}, names...)...)), "/")
	return l
}

// fleeting says after a message that what is there does not outlive a process; "" when it does.
func (l Location) fleeting() string {
	if l.Scheme != "mem" {
		return ""
	}
	return "; what is in mem:// is gone when the process that wrote it ends"
}

// Below reports whether a location is another one or lies below it.
func (l Location) Below(folder Location) bool {
	return l.Scheme == folder.Scheme && l.Bucket == folder.Bucket && l.parameters.Encode() == folder.parameters.Encode() &&
		(folder.Key == "" || l.Key == folder.Key || strings.HasPrefix(l.Key, folder.Key+"/"))
}

// shortened keeps a message readable.
func shortened(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

var errNotInBuild = errors.New("this program was built without s3, gs and azblob; install it with them: " + InstallFull)
