package endpoint

import (
	"encoding/json"
	"net/http"

	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/tokens"
)

// tokenize answers what the tokens of a prompt are, as vLLM does.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var q openai.Request
	if !s.readJSON(w, r, &q) {
		return
	}
	ids, err := tokens.AppendRequest(s.opt.Tokenizer, []uint32{}, &q)
	if err != nil {
		badRequest("", "%v.", err).write(w)
		return
	}
	body, _ := json.Marshal(struct { // numbers
		Count       int      `json:"count"`
		MaxModelLen int      `json:"max_model_len"`
		Tokens      []uint32 `json:"tokens"`
	}{len(ids), s.limit, ids})
	writeJSON(w, http.StatusOK, body)
}

// detokenize answers what the text of tokens is, as vLLM does.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Tokens []uint32 `json:"tokens"`
	}
	if !s.readJSON(w, r, &q) {
		return
	}
	body, _ := json.Marshal(map[string]string{"prompt": tokens.Text(s.opt.Tokenizer, q.Tokens)})
	writeJSON(w, http.StatusOK, body)
}

// readJSON reads the body of a request, or answers why it cannot.
func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, to any) bool {
	var buf []byte
	refused := s.readBody(w, r, &buf)
	if refused == nil {
		if err := json.Unmarshal(buf, to); err != nil {
			refused = unreadable(err)
		}
	}
	if refused != nil {
		refused.write(w)
	}
	return refused == nil
}
