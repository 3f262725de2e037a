package endpoint

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/simcore/engine"
)

// routes are what can be asked of the server.
func (s *Server) routes() http.Handler {
	api := http.NewServeMux()
	api.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, true) })
	api.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, false) })
	api.HandleFunc("GET /v1/models", s.listModels)
	api.HandleFunc("GET /v1/models/{model...}", s.showModel)
	mux := http.NewServeMux()
	mux.Handle("POST /tokenize", s.withKey(http.HandlerFunc(s.tokenize)))
	mux.Handle("POST /detokenize", s.withKey(http.HandlerFunc(s.detokenize)))
	mux.HandleFunc("/ping", s.health)
	if s.opt.Config.Stages()[0].Engine.Type == engine.TypeSGLang {
		mux.HandleFunc("GET /health_generate", s.health)
		mux.HandleFunc("GET /get_model_info", s.sglangModel)
	}
	mux.Handle("/v1/", s.withKey(withOpenAIErrors(api)))
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		body, _ := json.Marshal(map[string]string{"version": s.opt.Version})
		writeJSON(w, http.StatusOK, body)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("servegrid: /v1/chat/completions, /v1/completions, /v1/models, /health, /version, /metrics\n"))
	})
	return s.withDeadline(withOpenAIErrors(mux))
}

// withDeadline bounds how long a client may take to send the body of a request, also one that nobody reads, and to read an answer.
// A connection keeps the deadline of its request before.
func (s *Server) withDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.opt.ReadTimeout)) // a recorder of a test has none
		s.allowWrite(w)
		next.ServeHTTP(w, r)
	})
}

// allowWrite gives the client time from now on to read what is sent.
func (s *Server) allowWrite(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.opt.WriteTimeout)) // a recorder of a test has none
}

// withOpenAIErrors answers for what a mux does not know with an error as clients read it.
func withOpenAIErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			other := *r
			if other.Method = method; method != r.Method {
				if _, pattern := mux.Handler(&other); pattern != "" {
					allowed = append(allowed, method)
				}
			}
		}
		if len(allowed) > 0 {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			newRefusal(http.StatusMethodNotAllowed, "", "%s is not for %s; use %s", r.Method, r.URL.Path, strings.Join(allowed, " or ")).write(w)
			return
		}
		newRefusal(http.StatusNotFound, "", "There is no %s here; there are /v1/chat/completions, /v1/completions, /v1/models, /health, /version and /metrics.", r.URL.Path).write(w)
	})
}

// withKey lets in who has the key.
func (s *Server) withKey(next http.Handler) http.Handler {
	if s.opt.APIKey == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.opt.APIKey))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(key)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refused := newRefusal(http.StatusUnauthorized, "", "The API key is missing or wrong; send it as Authorization: Bearer KEY.")
			refused.body.Code = "invalid_api_key"
			refused.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// health is 200 while requests are taken.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// sglangModel says what SGLang's clients ask before they begin.
func (s *Server) sglangModel(w http.ResponseWriter, _ *http.Request) {
	body, _ := json.Marshal(map[string]any{"model_path": s.opt.Models[0], "tokenizer_path": s.opt.Tokenizer.Name(), "is_generation": true})
	writeJSON(w, http.StatusOK, body)
}

// model is a model as clients list it.
type model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root"`
	MaxModelLen int    `json:"max_model_len,omitempty"`
}

func (s *Server) model(name string) model {
	return model{name, "model", s.started.Unix(), "servegrid", s.opt.Models[0], s.limit}
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	var list struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}
	list.Object = "list"
	for _, name := range s.opt.Models {
		list.Data = append(list.Data, s.model(name))
	}
	body, _ := json.Marshal(list) // texts and numbers
	writeJSON(w, http.StatusOK, body)
}

func (s *Server) showModel(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("model")
	if !slices.Contains(s.opt.Models, name) {
		s.unknownModel(name).write(w)
		return
	}
	body, _ := json.Marshal(s.model(name)) // texts and numbers
	writeJSON(w, http.StatusOK, body)
}

func (s *Server) unknownModel(name string) *refusal {
	r := newRefusal(http.StatusNotFound, "model", "The model `%s` does not exist; there are: %s.", name, strings.Join(s.opt.Models, ", "))
	r.body.Code = "model_not_found"
	return r
}

// servedModel is the model of a request, which answers repeat, or why there is none.
func (s *Server) servedModel(r *openai.Request) (string, *refusal) {
	if r.Model == "" {
		return s.opt.Models[0], nil
	}
	if s.opt.StrictModel && !slices.Contains(s.opt.Models, r.Model) {
		return "", s.unknownModel(r.Model)
	}
	return r.Model, nil
}
