package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

// errRefused is how drivers report a connection that was refused.
var errRefused = fmt.Errorf("exceeded maximum number of attempts, 3, %w", &url.Error{
	Op: "Get", URL: "http://127.0.0.1:9/bucket?list-type=2",
	Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
})

// Only what a storage does not answer as it should may pass; what people have to mend does not.
func TestTemporary(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"a connection that breaks": {errors.New("read: connection reset by peer"), true},
		"a server that is ill":     {errors.New("StatusCode: 503, SlowDown"), true},
		"a server that is away":    {errRefused, true},
		"no folder":                {&fs.PathError{Op: "mkdir", Path: "/f", Err: syscall.ENOTDIR}, false},
		"no room":                  {&fs.PathError{Op: "write", Path: "/f", Err: syscall.ENOSPC}, true},
		"no region":                {errors.New("endpoint rule error, Invalid region: region was not a valid DNS name."), false},
		"a malformed region":       {errors.New("bind auth scheme params: invalid input region a b"), false},
		"no profile":               {errors.New("failed to get shared config profile, nope"), false},
		"no account":               {errors.New("azureblob: Options.AccountName is required"), false},
		"no object":                {fs.ErrNotExist, false},
		"no bucket":                {errors.New("NoSuchBucket"), false},
		"no permission":            {errors.New("StatusCode: 403"), false},
		"no credentials":           {errors.New("no EC2 IMDS role found"), false},
		"another build":            {errNotInBuild, false},
		"of a limit":               {&Error{text: "it is too large"}, false},
	} {
		var told *Error
		if err := explain("read", Location{Scheme: "s3", Bucket: "b", Key: "k"}, tt.err); !errors.As(err, &told) || told.Temporary() != tt.want {
			t.Errorf("%s: %v, temporary %v", name, err, told != nil && told.Temporary())
		}
	}
}

func TestExplanations(t *testing.T) {
	noHost := &url.Error{Op: "Head", URL: "https://b.host/k", Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "b.host"}}}
	notMade := &fs.PathError{Op: "mkdir", Path: "/proc/x", Err: syscall.ENOENT}
	for name, tt := range map[string]struct {
		doing, scheme string
		err           error
		want          string
	}{
		"away":                   {"read", "s3", errRefused, "s3://b/k cannot be read: http://127.0.0.1:9 does not answer (connection refused): check that it runs and can be reached from here, and the endpoint in the URL or AWS_ENDPOINT_URL_S3"},
		"no host":                {"written", "gs", noHost, "gs://b/k cannot be written: https://b.host does not answer (no such host): check that it runs and can be reached from here, and STORAGE_EMULATOR_HOST"},
		"a file for a folder":    {"read", "file", fmt.Errorf("blob (code=Unknown): %w", &fs.PathError{Op: "stat", Path: "/f/k", Err: syscall.ENOTDIR}), "file:///k cannot be read: stat /f/k: not a directory"},
		"a folder for no object": {"written", "file", notMade, "file:///k cannot be written: mkdir /proc/x: no such file or directory"},
		"gone with its process":  {"read", "mem", fs.ErrNotExist, "mem://b/k cannot be read: there is no such object; what is in mem:// is gone when the process that wrote it ends"},
		"not there":              {"read", "gs", fs.ErrNotExist, "gs://b/k cannot be read: there is no such object"},
	} {
		l := Location{Scheme: tt.scheme, Bucket: "b", Key: "k"}
		if got := explain(tt.doing, l, tt.err); got.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, got, tt.want)
		}
	}
	// What opening finds wrong, which reads the environment only, a later try does not mend.
	told := new(Error)
	if err := explain("opened", Location{Scheme: "s3"}, errors.New("a variable is malformed")); !errors.As(err, &told) || told.Temporary() || !strings.Contains(err.Error(), "malformed") {
		t.Errorf("opening: %v, temporary %v", err, told.Temporary())
	}
}
