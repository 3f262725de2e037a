// Package htmlpage frames the HTML pages of the program: single files that open offline, in light and dark, on a screen
// and on paper. It holds the head, the style sheet and the scripts that they share; a page brings the rest.
package htmlpage

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
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
	// Style is a style sheet of what is shared by some pages, in front of Styles.
	Style string
	// Data is what the scripts find, as JSON, in the element data. A [JSONWriter] writes it itself.
	Data any
}

// JSONWriter is data too large to be in memory as a whole. What it writes is JSON in which <, > and & are escaped, as
// json.Marshal does it.
type JSONWriter interface {
	WriteJSON(w io.Writer) error
}

//go:embed page.html page.css print.css numbers.js dom.js scale.js theme.js
var shared embed.FS

// Write writes the page. It holds no clock time, so equal pages give equal bytes.
func Write(w io.Writer, p Page) error {
	style, err := join(source{shared, []string{"page.css"}})
	own, ownErr := join(source{p.Files, p.Styles}, source{shared, []string{"print.css"}})
	if err = errors.Join(err, ownErr); err != nil {
		return fmt.Errorf("page %s: %w", p.Body, err)
	}
	script := ""
	if len(p.Scripts) > 0 {
		if script, err = join(source{shared, []string{"numbers.js", "dom.js", "scale.js", "theme.js"}}, source{p.Files, p.Scripts}); err != nil {
			return fmt.Errorf("page %s: %w", p.Body, err)
		}
	}
	frame, err := template.ParseFS(shared, "page.html")
	if err == nil {
		frame, err = frame.ParseFS(p.Files, p.Body)
	}
	if err != nil {
		return fmt.Errorf("page %s: %w", p.Body, err)
	}
	var page bytes.Buffer
	err = frame.ExecuteTemplate(&page, "page.html", struct {
		Title, Subtitle string
		Style           template.CSS
		Script, Data    template.JS
		Content         any
	}{p.Title, p.Subtitle, template.CSS(style + p.Style + own), template.JS(script), dataMark, p.Content})
	if err == nil {
		err = p.write(w, page.Bytes())
	}
	if err != nil {
		return fmt.Errorf("page %s: %w", p.Body, err)
	}
	return nil
}

// dataMark stands for the data while the page around it is made. A name cannot hold it: quotes are escaped everywhere else.
const dataMark = `"data"`

// write writes the page with the data in place of its mark, which a page without scripts lacks.
func (p Page) write(w io.Writer, page []byte) error {
	const element = `<script type="application/json" id="data">`
	before, after, marked := bytes.Cut(page, []byte(element+dataMark))
	if !marked {
		_, err := w.Write(page)
		return err
	}
	if _, err := w.Write(append(before, element...)); err != nil {
		return err
	}
	if err := p.writeData(w); err != nil {
		return err
	}
	_, err := w.Write(after)
	return err
}

func (p Page) writeData(w io.Writer) error {
	if large, ok := p.Data.(JSONWriter); ok {
		return large.WriteJSON(w)
	}
	data, err := json.Marshal(p.Data) // escapes <, > and &, so that no value can end the script element
	if err == nil {
		_, err = w.Write(data)
	}
	return err
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
