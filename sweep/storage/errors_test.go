package storage

import (
	"errors"
	"io/fs"
	"testing"
)

// Only what a storage does not answer as it should may pass; what people have to mend does not.
func TestTemporary(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"a connection that breaks": {errors.New("read: connection reset by peer"), true},
		"a server that is ill":     {errors.New("StatusCode: 503, SlowDown"), true},
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
