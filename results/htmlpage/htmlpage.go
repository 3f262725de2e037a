// Package htmlpage frames the HTML pages of the program: single files that open offline, in light and dark, on a screen
// and on paper. It holds the head, the style sheet and the scripts that they share; a page brings the rest.
package htmlpage

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"
)

// Page is what a page has besides the frame.
type Page struct {
	// Title heads the page, Subtitle stands below it.
	Title, Subtitle string
	// Files hold what the following names.
	Files fs.FS
	// Body is the template between head and scripts: it defines "body", which is executed with Content.
	Body    string
	Content any
	// Styles are style sheets, Scripts are scripts, in the order in which the page needs them. A page without scripts
	// may run none.
	Styles, Scripts []string
	// Data is what the scripts find, as JSON, in the element data.
	Data any
}

//go:embed page.html page.css print.css numbers.js dom.js scale.js
var shared embed.FS

// Write writes the page. It holds no clock time, so equal pages give equal bytes.
func Write(w io.Writer, p Page) error {
	style, err := join(source{shared, []string{"page.css"}}, source{p.Files, p.Styles}, source{shared, []string{"print.css"}})
	if err != nil {
		return fmt.Errorf("page %s: %w", p.Body, err)
	}
	script := ""
	if len(p.Scripts) > 0 {
		if script, err = join(source{shared, []string{"numbers.js", "dom.js", "scale.js"}}, source{p.Files, p.Scripts}); err != nil {
			return fmt.Errorf("page %s: %w", p.Body, err)
		}
	}
	data, err := json.Marshal(p.Data) // escapes <, > and &, so that no value can end the script element
	if err != nil {
		return fmt.Errorf("page %s: %w", p.Body, err)
	}
	frame, err := template.ParseFS(shared, "page.html")
	if err == nil {
		frame, err = frame.ParseFS(p.Files, p.Body)
	}
	if err != nil {
		return fmt.Errorf("page %s: %w", p.Body, err)
	}
	err = frame.ExecuteTemplate(w, "page.html", struct {
		Title, Subtitle string
		Style           template.CSS
		Script, Data    template.JS
		Content         any
	}{p.Title, p.Subtitle, template.CSS(style), template.JS(script), template.JS(data), p.Content})
	if err != nil {
		return fmt.Errorf("page %s: %w", p.Body, err)
	}
	return nil
}

// source is some files of a file system.
type source struct {
	files fs.FS
	names []string
}

func join(sources ...source) (string, error) {
	var b strings.Builder
	for _, s := range sources {
		for _, name := range s.names {
			content, err := fs.ReadFile(s.files, name)
			if err != nil {
				return "", err
			}
			b.Write(content)
		}
	}
	return b.String(), nil
}
