//go:build full

package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// cleanEnvironment takes away what says how to reach a bucket.
func cleanEnvironment(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "AZURE_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
}

// What the environment lacks is said before a connection is made, and is no reason to try again.
func TestSettingsThatDoNotFit(t *testing.T) {
	for name, tt := range map[string]struct {
		url         string
		environment map[string]string
		want        string
		temporary   bool
	}{
		"no region":                    {"s3://bucket/x", map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}, "s3://bucket/x cannot be listed: the region is missing or malformed: set AWS_REGION", false},
		"no region, no name of a host": {"s3://bucket/x?use_path_style=true&anonymous=true", nil, "the region is missing or malformed", false},
		"a malformed region":           {"s3://bucket/x", map[string]string{"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "a b"}, "set AWS_REGION", false},
		"no profile":                   {"s3://bucket/x", map[string]string{"AWS_PROFILE": "nope"}, "s3://bucket/x cannot be opened: there is no profile of that name in the configuration of AWS: correct AWS_PROFILE", false},
		"no such profile":              {"s3://bucket/x?profile=nope", nil, "or the profile in the URL", false},
		"no account":                   {"azblob://bucket/x", nil, "azblob://bucket/x cannot be opened: no storage account is given: set AZURE_STORAGE_ACCOUNT", false},
		"nobody there": {"s3://bucket/x?endpoint=http://127.0.0.1:9&use_path_style=true&region=us-east-1&anonymous=true", nil,
			"http://127.0.0.1:9 does not answer (connection refused): check that it runs", true},
	} {
		t.Run(name, func(t *testing.T) {
			cleanEnvironment(t)
			for variable, value := range tt.environment {
				t.Setenv(variable, value)
			}
			l, err := Parse(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			told := new(Error)
			if _, err = listing(t, l); !errors.As(err, &told) || !strings.Contains(err.Error(), tt.want) || told.Temporary() != tt.temporary {
				t.Errorf("%v, temporary %v", err, told.Temporary())
			}
		})
	}
}

// The SDK says nothing of its own when the machine has no role.
func TestTheSDKLogsNothing(t *testing.T) {
	cleanEnvironment(t)
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
	t.Setenv("AWS_REGION", "us-east-1")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	stderr := os.Stderr
	os.Stderr = log
	_, err = listing(t, Location{Scheme: "s3", Bucket: "b"})
	os.Stderr = stderr
	if !errors.Is(err, ErrNoCredentials) || !asked {
		t.Errorf("err = %v, asked for a role: %v", err, asked)
	}
	if text, err := os.ReadFile(log.Name()); err != nil || len(text) > 0 {
		t.Errorf("%v, the SDK logs %q", err, text)
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
