package storage

import (
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/files"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]string{
		"s3://bucket/runs/x":   "s3://bucket/runs/x",
		"s3://bucket/runs/x/":  "s3://bucket/runs/x",
		"s3://bucket":          "s3://bucket/",
		"gs://bucket/a b":      "gs://bucket/a%20b",
		"file:///data/t.jsonl": "file:///data/t.jsonl",
		"mem://b/../../x":      "mem://b/x",
		"S3://Bucket/X":        "s3://Bucket/X",
		"FILE:///data/X":       "file:///data/X",
		"s3://b/x?region=eu-1&endpoint=http://h:9000": "s3://b/x?endpoint=http%3A%2F%2Fh%3A9000&region=eu-1",
	} {
		l, err := Parse(raw)
		if err != nil || l.String() != want {
			t.Errorf("Parse(%q) = %v, %v, want %s", raw, l, err, want)
		}
		if again, err := Parse(l.String()); err != nil || again.String() != want {
			t.Errorf("Parse(%q) = %v, %v", l, again, err)
		}
	}
}

func TestParseRefusesSecrets(t *testing.T) {
	for raw, want := range map[string]string{
		"s3://AKIA:hush@bucket/x":                             "may not hold a user",
		"s3://bucket/x?X-Amz-Signature=hush":                  `"X-Amz-Signature" is not allowed`,
		"s3://bucket/x?aws_secret_access_key=hush":            "AWS_ACCESS_KEY_ID",
		"azblob://c/x?sv=1&sig=hush":                          "AZURE_STORAGE_KEY",
		"gs://b/x?private_key_path=hush":                      "GOOGLE_APPLICATION_CREDENTIALS",
		"s3://b/x?endpoint=http://u:hush@h":                   "endpoint must be a URL",
		"https://host/x?hush":                                 "not known; use one of: azblob, file, gs, mem, s3",
		"s3:///key":                                           "names no bucket",
		"file://data/x":                                       "three slashes",
		"s3://b/x#hush":                                       "after #",
		"s3://b:hush\x7f/x":                                   "no URL that can be read",
		"mem://b/x?a=" + strings.Repeat("hush", 100):          "there are none",
		"plain/path":                                          "no URL",
		"s3://b/x?region=%zz&hush":                            "cannot be read",
		"s3://u:p%40hush@b/x?endpoint=http://h&session=hush2": "may not hold",
	} {
		_, err := Parse(raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want %q", raw, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") && !strings.Contains(raw, "#") && !strings.Contains(raw, "b:hush") {
			t.Errorf("Parse(%q) shows the secret: %v", raw, err)
		}
		if shown := files.Shown(raw); strings.Contains(shown, "hush") && files.IsURL(raw) && !strings.Contains(raw, "#") && !strings.Contains(raw, "b:hush") {
			t.Errorf("Shown(%q) = %s", raw, shown)
		}
	}
}

func TestCheckPath(t *testing.T) {
	for path, want := range map[string]string{
		"s3:/bucket/x":       "s3:/bucket/x is a path of this machine and looks like a URL that lacks a slash: write s3://bucket/x, or ./ before it",
		"gs:/b":              "write gs://b,",
		"azblob:/b":          "write azblob://b,",
		"Mem:/b":             "write Mem://b,",
		"FILE:/data/x":       "FILE:/data/x is a path of this machine and looks like a URL that lacks a slash: write FILE:///data/x,",
		"s3:/key:hush@b/x":   "write s3://***@b/x,",
		"s3://bucket/x":      "",
		"S3://bucket/x":      "",
		"./s3:/bucket/x":     "",
		"runs/s3:/bucket":    "",
		"s3:bucket":          "",
		"s3":                 "",
		"C:/runs":            "",
		"":                   "",
		"file:///data/x":     "",
		"other:/bucket/x":    "",
		"s3:///bucket/three": "",
	} {
		err := CheckPath(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("CheckPath(%q) = %v, want %q", path, err, want)
		}
	}
}

func TestLocationsBelow(t *testing.T) {
	at := func(raw string) Location {
		l, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, tc := range []struct {
		inner, outer string
		want         bool
	}{
		{"s3://b/runs/x", "s3://b/runs", true},
		{"s3://b/runs", "s3://b/runs", true},
		{"s3://b/runs/x", "s3://b", true},
		{"s3://b/runs2/x", "s3://b/runs", false},
		{"s3://b/runs/../secret", "s3://b/runs", false},
		{"s3://c/runs/x", "s3://b/runs", false},
		{"gs://b/runs/x", "s3://b/runs", false},
		{"s3://b/runs/x?endpoint=http://evil", "s3://b/runs", false},
	} {
		if got := at(tc.inner).Below(at(tc.outer)); got != tc.want {
			t.Errorf("%s below %s = %v", tc.inner, tc.outer, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"s3://b/k?region=x", "file:///a/../b", "s3://u:p@b/k", "azblob://c/k?sig=x", "mem://b", "s3://b/%2e%2e/k"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		l, err := Parse(raw)
		if err != nil {
			return
		}
		again, err := Parse(l.String())
		if err != nil || again.Key != l.Key || again.Bucket != l.Bucket {
			t.Fatalf("%q is %q, which is %v, %v", raw, l, again, err)
		}
		if strings.Contains("/"+l.Key+"/", "/../") {
			t.Fatalf("%q leads out of the bucket: %q", raw, l.Key)
		}
		if joined := l.Join("../../x"); !strings.HasSuffix(joined.Key, "x") {
			t.Fatalf("%q", joined.Key)
		}
	})
}
