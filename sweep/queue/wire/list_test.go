package wire

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzDecodeList checks that no list makes anything but an error, or paths that stay below their folder.
func FuzzDecodeList(f *testing.F) {
	digest := strings.Repeat("a", 64)
	entry := func(path string) string { return `{"path":"` + path + `","sha256":"` + digest + `","size":1}` }
	for _, text := range []string{
		`{"format":1,"files":[` + entry("a/b") + `,` + entry("a/c") + `]}`,
		`{"format":1,"files":[` + entry("../b") + `]}`,
		`{"format":1,"files":[` + entry("/b") + `]}`,
		`{"format":1,"files":[` + entry("a") + `,` + entry("a/b") + `]}`,
		`{"format":1,"files":[` + entry("a") + `,` + entry("a.b") + `,` + entry("a/b") + `]}`,
		`{"format":1,"files":[` + entry(".list.json") + `]}`,
		`{"format":2,"files":null}`, `{"format":1,"files":[],"more":1}`, `{} {}`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := DecodeList(text)
		if err != nil {
			return
		}
		for _, file := range l.Files {
			if !filepath.IsLocal(filepath.FromSlash(file.Path)) || strings.HasPrefix(file.Path, ".") || strings.Contains(file.Path, `\`) {
				t.Fatalf("%q is taken", file.Path)
			}
		}
		again, _, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeList(again); err != nil {
			t.Fatal(err)
		}
	})
}
