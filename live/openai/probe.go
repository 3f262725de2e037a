package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/servegrid/servegrid/simcore/files"
)

// probeTimeout bounds how long a server may take to say that it is there.
const probeTimeout = 10 * time.Second

// Probe asks each of the target's servers whether it is there, and what it serves. Any answer is one, since not all servers have
// /v1/models. models are the names of the models of those that say so, without repetition. The error names the servers that do
// not answer.
func (t *Target) Probe(ctx context.Context) (models []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var errs []error
	known := map[string]bool{}
	for _, server := range t.opt.URLs {
		names, err := t.probe(ctx, server)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s does not answer: %w", files.Shown(server.String()), err))
		}
		for _, name := range names {
			if !known[name] {
				known[name] = true
				models = append(models, name)
			}
		}
	}
	return models, errors.Join(errs...)
}

// probe asks one server.
func (t *Target) probe(ctx context.Context, server *url.URL) (models []string, err error) {
	r := (&http.Request{Method: http.MethodGet, URL: endpoint(server, "/v1/models"), Header: t.header.Clone()}).WithContext(ctx)
	r.Header.Set("Accept", "application/json")
	for name, values := range t.opt.Header {
		r.Header[name] = values
	}
	authorize(r)
	response, err := t.transport.RoundTrip(r)
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(body, &list) != nil {
		return nil, nil // it is there, which is what was asked
	}
	for _, model := range list.Data {
		models = append(models, model.ID)
	}
	return models, nil
}
