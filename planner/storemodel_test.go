package planner

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// storeCase is a random performance model of ai-dynamo 1.3.1: what it was told, and what it then answered.
type storeCase struct {
	Kind                    string
	Batched, Seqs, KV       int64
	Samples, Buckets, Least int
	Steps                   []struct {
		Passes       [][10]float64
		Observations int
		Sufficient   bool
		Queries      []storeAnswer
	}
}

type storeAnswer struct {
	Worker             [10]float64
	Hit, Scale, Accept float64
	TTFT, Own          *float64
	OwnPost            *float64 `json:"own_post"`
	Post, ITL          *float64
	ITLPost            *float64 `json:"itl_post"`
	ISL, OSL           float64
	SLATTFT            float64 `json:"sla_ttft"`
	SLAITL             float64 `json:"sla_itl"`
	Capacity           *struct {
		RPS       float64
		TTFT, ITL *float64
		Eligible  bool
	}
}

func loggedPass(v [10]float64) *pass {
	return &pass{
		worker: int32(v[0]), prefills: int64(v[1]), prefillTokens: int64(v[2]), decodes: int64(v[3]), decodeTokens: int64(v[4]),
		queuedPrefills: int64(v[5]), queuedPrefillTokens: int64(v[6]), queuedDecodes: int64(v[7]),
		queuedDecodeTokens: int64(v[8]), wallSeconds: v[9],
	}
}

func TestStoreModelAnswersAsTheReference(t *testing.T) {
	name := "testdata/storemodel.json.gz"
	if v := os.Getenv("STORE_CASES"); v != "" {
		name = v
	}
	for i, c := range readStoreCases(t, name) {
		kind := map[string]poolKind{"aggregated": aggregatedPool, "prefill": prefillPool, "decode": decodePool}[c.Kind]
		config := DefaultConfig()
		config.MaxNumFPMSamples, config.FPMSampleBucketSize, config.LoadMinObservations = c.Samples, c.Buckets, c.Least
		m := newStoreModel(kind, &config, rulesFor(rules.Dynamo13), limits{batchedTokens: c.Batched, sequences: c.Seqs, kvTokens: c.KV})
		for j, step := range c.Steps {
			for _, p := range step.Passes {
				m.observe([]pass{*loggedPass(p)})
			}
			if m.observations() != step.Observations || m.sufficient() != step.Sufficient {
				t.Errorf("case %d step %d: %d observations, sufficient %v; want %d, %v", i, j, m.observations(),
					m.sufficient(), step.Observations, step.Sufficient)
			}
			for k := range step.Queries {
				compareAnswers(t, m, &step.Queries[k], i, j, k)
			}
		}
	}
}

// observations is the number of passes that a model keeps.
func (m *storeModel) observations() int {
	n := 0
	for i := range m.stores {
		n += m.stores[i].kept.count
	}
	return n
}

func readStoreCases(t *testing.T, name string) (cases []storeCase) {
	t.Helper()
	if err := json.NewDecoder(openRecorded(t, name)).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func compareAnswers(t *testing.T, m *storeModel, a *storeAnswer, i, j, k int) {
	t.Helper()
	compare := func(what string, got float64, ok bool, want *float64) {
		if ok != (want != nil) || ok && math.Abs(got-*want) > 1e-8*math.Max(math.Abs(*want), 1e-3) {
			w := math.NaN()
			if want != nil {
				w = *want
			}
			t.Errorf("case %d step %d query %d: %s is %v (%v), want %v", i, j, k, what, got, ok, w)
		}
	}
	w := loggedPass(a.Worker)
	post := 0.0
	if m.kind == aggregatedPool {
		post = a.Scale
	}
	if m.kind != decodePool {
		for _, q := range []struct {
			name string
			q    ttftQuery
			want *float64
		}{
			{"ttft", ttftQuery{queue: 1, hitRate: a.Hit}, a.TTFT},
			{"ttft of the prompt alone", ttftQuery{hitRate: a.Hit}, a.Own},
			{"consolidated ttft of the prompt alone", ttftQuery{consolidated: post, hitRate: a.Hit}, a.OwnPost},
			{"consolidated ttft", ttftQuery{queue: a.Scale, consolidated: post, hitRate: a.Hit}, a.Post},
		} {
			got, ok := m.ttftMs(w, q.q)
			compare(q.name, got, ok, q.want)
		}
	}
	if m.kind != prefillPool {
		got, ok := m.itlMs(w, itlQuery{acceptLength: a.Accept})
		compare("itl", got, ok, a.ITL)
		got, ok = m.itlMs(w, itlQuery{consolidated: a.Scale, acceptLength: a.Accept})
		compare("consolidated itl", got, ok, a.ITLPost)
	}
	got, ok := m.capacity(capacityQuery{
		inputTokens: a.ISL, outputTokens: a.OSL, ttftMs: a.SLATTFT, itlMs: a.SLAITL, hitRate: a.Hit, acceptLength: a.Accept,
	})
	if a.Capacity == nil {
		compare("capacity", got.requestsPerSecond, ok, nil)
		return
	}
	compare("capacity", got.requestsPerSecond, ok, &a.Capacity.RPS)
	if m.kind != decodePool {
		compare("ttft at capacity", got.ttftMs, ok, a.Capacity.TTFT)
	}
	if m.kind != prefillPool {
		compare("itl at capacity", got.itlMs, ok, a.Capacity.ITL)
	}
	if ok && got.eligible != a.Capacity.Eligible {
		t.Errorf("case %d step %d query %d: capacity is eligible: %v", i, j, k, got.eligible)
	}
}
