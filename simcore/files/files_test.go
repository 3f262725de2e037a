package files

import "testing"

func TestURLs(t *testing.T) {
	for _, tc := range []struct{ folder, name, want string }{
		{"s3://b/runs/x", "t.jsonl", "s3://b/runs/x/t.jsonl"},
		{"s3://b/runs/x?region=eu", "a/t.jsonl", "s3://b/runs/x/a/t.jsonl?region=eu"},
		{"s3://b/runs/x", "../t.jsonl", "s3://b/runs/t.jsonl"},
		{"s3://b/runs", "../../../t.jsonl", "s3://b/t.jsonl"},
		{"s3://b", "t.jsonl", "s3://b/t.jsonl"},
		{"file:///data", "t.jsonl", "file:///data/t.jsonl"},
		{"runs/x", "t.jsonl", "runs/x/t.jsonl"},
		{"s3://b/runs", "gs://c/t.jsonl", "gs://c/t.jsonl"},
		{"s3://b/runs", "/t.jsonl", "/t.jsonl"},
		{"s3://b/runs", "-", "-"},
		{"s3://b/runs", "", ""},
	} {
		if got := From(tc.folder, tc.name); got != tc.want {
			t.Errorf("From(%q, %q) = %q, want %q", tc.folder, tc.name, got, tc.want)
		}
	}
	for _, tc := range []struct{ url, dir, base string }{
		{"s3://b/runs/x/t.jsonl?region=eu", "s3://b/runs/x?region=eu", "t.jsonl"},
		{"s3://b/t.jsonl", "s3://b/", "t.jsonl"},
		{"s3://b", "s3://b/", "b"},
		{"runs/t.jsonl", "runs", "t.jsonl"},
	} {
		if dir, base := Dir(tc.url), Base(tc.url); dir != tc.dir || base != tc.base {
			t.Errorf("%s: %q, %q", tc.url, dir, base)
		}
	}
	for path, want := range map[string]bool{"s3://b": true, "C://x": false, "a/b": false, "azblob://c/k": true, "://x": false} {
		if IsURL(path) != want {
			t.Errorf("IsURL(%q) = %v", path, !want)
		}
	}
}

func TestShownIn(t *testing.T) {
	got := ShownIn(`paths=[s3://b/x?sig=hush, s3://k:hush@b/y, plain, s3://b/z?region=eu]`)
	if want := `paths=[s3://b/x?..., s3://***@b/y, plain, s3://b/z?region=eu]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A password may have any characters, also where it is no valid URL with them.
func TestShown(t *testing.T) {
	for raw, want := range map[string]string{
		"http://host:8000/v1":            "http://host:8000/v1",
		"http://user:hush@host/v1":       "http://***@host/v1",
		"http://user:hush/hush@host/v1":  "http://***@host/v1",
		"http://user:hush@hush@host":     "http://***@host",
		"http://u:hu@sh/hush@host/v1":    "http://***@host/v1",
		"http://user:hush?hush@host/v1":  "http://***?...",
		"http://user:hush#hush@host/v1":  "http://***?...",
		"http://host/models/m@v1":        "http://host/models/m@v1",
		"http://host/v1?key=hush":        "http://host/v1?...",
		"http://host/v1?mail=hush@hush":  "http://host/v1?...",
		"https://user:hush@host/?x=hush": "https://***@host/?...",
		"not a URL":                      "not a URL",
	} {
		if got := Shown(raw); got != want {
			t.Errorf("%s is shown as %s, not %s", raw, got, want)
		}
	}
}
