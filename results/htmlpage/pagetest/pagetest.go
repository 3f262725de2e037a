// Package pagetest opens pages in a real headless Chromium, for tests.
package pagetest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Browser shows a page.
type Browser struct {
	// T is the test that looks at it.
	T   *testing.T
	ctx context.Context

	mu sync.Mutex
	// complaints are what the page reported: exceptions, console messages, blocked content, dialogs.
	complaints []string
}

// Open writes a page to disk and opens it there, as a user would. Without a browser the test is skipped.
func Open(t *testing.T, html string) *Browser {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(html), 0o600); err != nil {
		t.Fatal(err)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(findChromium(t)), chromedp.WindowSize(1400, 1000), // a fresh profile is the default
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &Browser{T: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	b.ctx, cancel = context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(cancel)
	b.Do(chromedp.Navigate("file://" + path))
	return b
}

func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium, chromium-browser or google-chrome in PATH: the page is not tested in a browser")
	return ""
}

func (b *Browser) listen(event any) {
	var complaint string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		complaint = (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()
	case *runtime.EventConsoleAPICalled:
		complaint = "console: " + string(e.Type)
	case *cdplog.EventEntryAdded:
		complaint = e.Entry.Text
	case *page.EventJavascriptDialogOpening:
		complaint = "dialog: " + e.Message
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, complaint)
}

// Do does some steps.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.T.Fatal(err)
	}
}

// Eval runs an expression in the page and returns its value.
func Eval[T any](b *Browser, expression string) T {
	b.T.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.T.Fatalf("%s: %v", expression, err)
	}
	return out
}

// Settle waits until the page has drawn what it was asked to, in the frames that follow.
func (b *Browser) Settle() {
	b.T.Helper()
	const frames = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))`
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](frames, chromedp.EvalAwaitPromise)); err != nil {
		b.T.Fatal(err)
	}
}

// Center is the pixel in the middle of an element, which it scrolls to.
func (b *Browser) Center(selector string) (x, y float64) {
	b.T.Helper()
	quoted, err := json.Marshal(selector)
	if err != nil {
		b.T.Fatal(err)
	}
	at := Eval[[2]float64](b, `(() => { const e = document.querySelector(`+string(quoted)+`); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
	return at[0], at[1]
}

// ShowEverywhere shows the page in the dark and on paper.
func (b *Browser) ShowEverywhere() {
	b.T.Helper()
	for _, media := range []emulation.SetEmulatedMediaParams{
		{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}, {Media: "print"},
	} {
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
			b.T.Fatal(err)
		}
		Eval[bool](b, `(() => { dispatchEvent(new Event("beforeprint")); return true; })()`)
	}
}

// ExpectNoComplaints fails the test when the page complained.
func (b *Browser) ExpectNoComplaints() {
	b.T.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.T.Errorf("the page complained:\n%s", strings.Join(b.complaints, "\n"))
	}
}
