package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestErrorsHideSecrets checks that a server that repeats what it was sent does not bring secrets into results, wherever in a long
// message they are.
func TestErrorsHideSecrets(t *testing.T) {
	const key, own = "sk-0123456789", "own-secret-value"
	var filler string
	var status int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := json.Marshal(filler + r.Header.Get("Authorization") + r.Header.Get("X-Own") + " user=me:pass")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `data: {"error":`+string(text)+"}\n\n")
	}))
	defer server.Close()
	for _, c := range []struct {
		name, key string
		status    int
	}{{"a status", key, 401}, {"an event", key, 200}, {"a user", "", 401}} {
		target := targetFor(t, server.URL, func(o *TargetOptions) {
			o.APIKey, o.Header = c.key, http.Header{"X-Own": {own}}
			o.URLs[0].User = url.UserPassword("me", "pass")
		})
		status = c.status
		for _, n := range []int{0, 270, 280, 290} {
			filler = strings.Repeat("a", n)
			_, err := send(t.Context(), target)
			for _, secret := range []string{key, key[:6], own, own[:6], "bWU6", "me:pass"} {
				if err == nil || strings.Contains(err.Error(), secret) {
					t.Errorf("%s: after %d bytes: %q is in %v", c.name, n, secret, err)
				}
			}
		}
	}
}

// TestErrorsAreText checks that messages are text, whatever a server sends and wherever they are cut.
func TestErrorsAreText(t *testing.T) {
	for _, body := range []string{"\xff\xfe\x80", strings.Repeat("é", 400), "a" + strings.Repeat("é", 400), `{"error":"` + strings.Repeat("a", 270) + strings.Repeat("é", 99) + `"}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, body)
		}))
		if _, err := send(t.Context(), targetFor(t, server.URL, nil)); err == nil || !utf8.ValidString(err.Error()) || len(err.Error()) > 400 {
			t.Errorf("%.10q: %v", body, err)
		}
		server.Close()
	}
}
