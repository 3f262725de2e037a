//go:build full

package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/servegrid/servegrid/simcore/files"
)

// cloudURL is that of a folder of its own on the server that the environment names; tools/storage.sh starts the servers.
func cloudURL(t *testing.T, scheme string) string {
	t.Helper()
	variable := "SERVEGRID_TEST_" + strings.ToUpper(scheme)
	bucket := os.Getenv(variable)
	if bucket == "" {
		t.Skipf("%s is not set to the URL of a bucket; tools/storage.sh starts a server and sets it", variable)
	}
	if scheme == "azblob" {
		makeContainer(t, bucket)
	}
	return files.Join(bucket, fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano()))
}

// makeContainer makes the container of a URL unless it is there.
func makeContainer(t *testing.T, url string) {
	t.Helper()
	s, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var client *container.Client
	if !s.objects.(driven).As(&client) {
		t.Fatal("no client")
	}
	_, _ = client.Create(t.Context(), nil) // what is missing shows in the test
}

func eachCloud(t *testing.T, test func(t *testing.T, url string)) {
	for _, scheme := range []string{"s3", "gs", "azblob"} {
		t.Run(scheme, func(t *testing.T) { test(t, cloudURL(t, scheme)) })
	}
}

func TestCloudStore(t *testing.T) { eachCloud(t, checkStore) }

func TestCloudResults(t *testing.T) {
	eachCloud(t, func(t *testing.T, url string) {
		first := open(t, url, t.TempDir(), ResultsOptions{})
		var want strings.Builder
		for i := range compactAbove + 2 {
			line := head + fmt.Sprintf("{\"id\":%d}\n", i)
			want.WriteString(line)
			if err := first.PushJournal(t.Context(), []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		first.Close() // killed
		for range 2 {
			again := open(t, url, t.TempDir(), ResultsOptions{})
			if got := journalOf(t, again); got != want.String() {
				t.Errorf("journal of %d bytes, want %d", len(got), want.Len())
			}
			again.Close()
		}
	})
}

func TestCloudErrors(t *testing.T) {
	eachCloud(t, func(t *testing.T, url string) {
		l, err := Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		l.Bucket = "no-such-bucket-here"
		_, err = listing(t, l)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "there is no bucket no-such-bucket-here") {
			t.Errorf("missing bucket: %v", err)
		}
	})
}

func TestCloudAccessDenied(t *testing.T) {
	url := cloudURL(t, "s3")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hushhushhushhushhush")
	l, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	_, err = listing(t, l)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "access is denied") || strings.Contains(err.Error(), "hush") {
		t.Errorf("wrong key: %v", err)
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	_, err = listing(t, l)
	if !errors.Is(err, ErrNoCredentials) || !strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID") {
		t.Errorf("no key: %v", err)
	}
}

func listing(t *testing.T, l Location) ([]Object, error) {
	s, err := openLocation(t.Context(), l)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.List(t.Context(), "", false)
}
