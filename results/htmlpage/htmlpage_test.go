package htmlpage

import (
	"strings"
	"testing"
	"testing/fstest"
)

func write(t *testing.T, p Page) (string, error) {
	t.Helper()
	p.Files = fstest.MapFS{
		"body.html":   {Data: []byte(`{{define "body"}}<main>{{template "tiles" .}}</main>{{end}}`)},
		"broken.html": {Data: []byte(`{{define "body"}}{{.Missing}}{{end}}`)},
		"own.css":     {Data: []byte(".own { color: red; }")}, "own.js": {Data: []byte("own();")},
	}
	var b strings.Builder
	err := Write(&b, p)
	return b.String(), err
}

func TestWrite(t *testing.T) {
	tiles := []Tile{{Label: "a < b", Figure: "1"}}
	plain, err := write(t, Page{Title: "<b>", Subtitle: "sub", Body: "body.html", Content: tiles, Styles: []string{"own.css"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>&lt;b&gt;</title>", "a &lt; b", ".own { color: red; }", "content=\"default-src 'none'; style-src 'unsafe-inline'\""} {
		if !strings.Contains(plain, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(plain, "<script") {
		t.Error("a page without scripts has one")
	}
	if own, print := strings.Index(plain, ".own"), strings.Index(plain, "@media print"); own > print {
		t.Error("what holds on paper must come last")
	}
	scripted, err := write(t, Page{Title: "x", Body: "body.html", Content: []Tile{}, Scripts: []string{"own.js"}, Data: []string{"</script>"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"own();", `\u003c/script\u003e`, "script-src 'unsafe-inline'", "function formatNumber", "<noscript>"} {
		if !strings.Contains(scripted, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	for name, p := range map[string]Page{
		"no body":   {Body: "none.html"},
		"no style":  {Body: "body.html", Styles: []string{"none.css"}},
		"no script": {Body: "body.html", Scripts: []string{"none.js"}},
		"no field":  {Body: "broken.html", Content: []Tile{}},
		"no data":   {Body: "body.html", Scripts: []string{"own.js"}, Data: func() {}},
	} {
		if _, err := write(t, p); err == nil || !strings.HasPrefix(err.Error(), "page "+p.Body) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		Whole(-1234567): "-1,234,567", Whole(0): "0", Number(.12345): "0.123", Number(1234.5): "1,234", Number(-1e6): "-1,000,000", Number(12.3): "12.3",
	} {
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}
