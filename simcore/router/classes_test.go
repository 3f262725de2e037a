package router

import (
	"strings"
	"testing"
)

const twoFamilies = `
default_policy_family: batch
uncached_isl_buckets:
  - {min_tokens: 0, bucket: short}
  - {min_tokens: 1000, bucket: long}
policy_classes:
  - {name: batch-short, policy_family: batch, cache_bucket: short, quantum: 10}
  - {name: batch-long, policy_family: batch, cache_bucket: long, quantum: 20, prefill_busy_threshold: 5}
  - {name: chat-short, policy_family: chat, cache_bucket: short, quantum: 30, queue_policy: wspt, prefill_busy_threshold_frac: 0}
  - {name: chat-long, policy_family: chat, cache_bucket: long, quantum: 40, prefill_busy_threshold: 0, prefill_busy_threshold_frac: 0.5}
  - {name: gold, quantum: 50, request_queue_limit_per_worker: 0, raw_isl_token_queue_limit_per_worker: 7, cached_token_queue_limit_per_worker: null}
`

func TestParseClasses(t *testing.T) {
	c, err := ParseClasses([]byte(twoFamilies))
	if err != nil {
		t.Fatal(err)
	}
	p := Config{Classes: c}.profile()
	want := []Class{
		{"batch-short", QueueFCFS, 10, Unset, 16, Unset, Unset, Unset},
		{"batch-long", QueueFCFS, 20, 5, Unset, Unset, Unset, Unset},
		{"chat-short", QueueWSPT, 30, Unset, 0, Unset, Unset, Unset},
		{"chat-long", QueueFCFS, 40, 0, .5, Unset, Unset, Unset},
		{"gold", QueueFCFS, 50, Unset, 16, 0, 7, Unset},
	}
	for i, class := range p.classes {
		if class != want[i] {
			t.Errorf("class %d is %+v, want %+v", i, class, want[i])
		}
	}
	for _, test := range []struct {
		name     string
		uncached int64
		want     string
	}{
		{"", 0, "batch-short"},
		{"", 999, "batch-short"},
		{"", 1000, "batch-long"},
		{"chat", 999, "chat-short"},
		{"chat", 1 << 40, "chat-long"},
		{"gold", 5000, "gold"},
		{"chat-short", 0, "batch-short"}, // who has a family cannot be named alone
		{"unknown", 5000, "batch-long"},
	} {
		if got := p.classes[p.classOf(test.name, test.uncached)].Name; got != test.want {
			t.Errorf("%q with %d uncached tokens is in class %s, want %s", test.name, test.uncached, got, test.want)
		}
	}
}

// TestModelProfiles checks that a model's profile replaces the file's own, and what holds without either.
func TestModelProfiles(t *testing.T) {
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(twoFamilies, "batch", "offline")), "\n", "\n    ") + "\n"
	both, err := ParseClasses([]byte(twoFamilies + "models:\n  llama:\n" + indented))
	if err != nil {
		t.Fatal(err)
	}
	only, err := ParseClasses([]byte("models:\n  llama:\n" + indented))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		classes     *Classes
		model, want string
	}{
		{both, "", "batch-short"},
		{both, "qwen", "batch-short"},
		{both, "llama", "offline-short"},
		{only, "llama", "offline-short"},
		{only, "qwen", "default"},
		{nil, "", "default"},
	} {
		c := DefaultConfig()
		c.Classes, c.ModelName = test.classes, test.model
		p := c.profile()
		if got := p.classes[p.classOf("", 0)].Name; got != test.want {
			t.Errorf("model %q: class %s, want %s", test.model, got, test.want)
		}
	}
}

// TestBadClasses checks what is refused, and that all problems come at once.
func TestBadClasses(t *testing.T) {
	const good = `default_policy_family: a
uncached_isl_buckets:
  - {min_tokens: 0, bucket: all}
policy_classes:
  - {name: c, policy_family: a, cache_bucket: all, quantum: 1}
`
	edit := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	add := func(class string) string { return good + "  - {" + class + "}\n" }
	for _, test := range []struct{ file, want string }{
		{"", "give default_policy_family, uncached_isl_buckets and policy_classes"},
		{"- a", "mapping"},
		{"a: [", ""},
		{good + "worker_selection: {}\n", "unknown field"},
		{good + "default_policy_family: a\n", "default_policy_family"},
		{edit("quantum: 1", "quantum: 1, color: red"), "unknown field"},
		{edit("quantum: 1", "quantum: 0"), "policy_classes[0].quantum: 0"},
		{edit("quantum: 1", "quantum: many"), "quantum"},
		{edit(", quantum: 1", ""), "policy_classes[0].quantum: 0"},
		{edit("quantum: 1", "quantum: 1, queue_policy: lcfs"), "policy_classes[0].queue_policy: lcfs is not allowed; use one of: fcfs, wspt"},
		{edit("quantum: 1", "quantum: 1, prefill_busy_threshold: -1"), "prefill_busy_threshold: -1"},
		{edit("quantum: 1", "quantum: 1, prefill_busy_threshold_frac: -1"), "prefill_busy_threshold_frac: -1"},
		{edit("quantum: 1", "quantum: 1, prefill_busy_threshold_frac: .nan"), "prefill_busy_threshold_frac: NaN"},
		{edit("name: c", "name: 'a b'"), `policy_classes[0].name: "a b" is not allowed; use letters`},
		{edit("min_tokens: 0", "min_tokens: 1"), "uncached_isl_buckets[0].min_tokens: 1 is not allowed; the first bucket starts at 0"},
		{edit("bucket: all}", "bucket: all}\n  - {min_tokens: 0, bucket: b}"), "give more than the bucket before it"},
		{edit("bucket: all}", "bucket: all}\n  - {min_tokens: 9, bucket: all}"), "another bucket has this name"},
		{edit("bucket: all}", "bucket: all}\n  - {min_tokens: 9, bucket: b}"), "family a has no class for bucket b"},
		{edit("default_policy_family: a\n", ""), "default_policy_family: name a family"},
		{edit("default_policy_family: a", "default_policy_family: z"), "default_policy_family: z is not allowed"},
		{add("name: c, policy_family: b, cache_bucket: all, quantum: 1"), "policy_classes[1].name: c is not allowed; another class"},
		{add("name: d, policy_family: a, quantum: 1"), "policy_classes[1].cache_bucket: give it with policy_family"},
		{add("name: d, cache_bucket: all, quantum: 1"), "policy_classes[1].policy_family: give it with cache_bucket"},
		{add("name: a, quantum: 1"), "policy_classes: a is not allowed; a class without a family has the name of a family"},
		{add("name: d, policy_family: a, cache_bucket: all, quantum: 1"), "class c has this family and bucket"},
		{add("name: d, policy_family: b, cache_bucket: zz, quantum: 1"), "policy_classes[1].cache_bucket: zz is not allowed; name one of uncached_isl_buckets"},
		{edit("quantum: 1", "quantum: 0, queue_policy: lcfs"), "lcfs"},
		{"models: {m: {}}", "models.m.policy_classes: give one class or more"},
	} {
		c, err := ParseClasses([]byte(test.file))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n%v, %v; want an error with %q", test.file, c, err, test.want)
		}
	}
	_, err := ParseClasses([]byte(edit("quantum: 1", "quantum: 0, queue_policy: lcfs")))
	if n := len(strings.Split(err.Error(), "\n")); n != 2 {
		t.Errorf("%d problems, want 2: %v", n, err)
	}
}

// FuzzParseClasses checks that no input makes the parser panic, and that every request finds a class of what it accepts.
func FuzzParseClasses(f *testing.F) {
	f.Add([]byte(twoFamilies), "chat", int64(7))
	f.Add([]byte("models: {m: {default_policy_family: a, uncached_isl_buckets: [{min_tokens: 0, bucket: b}], policy_classes: [{name: c, quantum: 1}]}}"), "c", int64(0))
	f.Add([]byte("policy_classes: &a [*a]"), "", int64(1))
	f.Fuzz(func(t *testing.T, file []byte, name string, uncached int64) {
		c, err := ParseClasses(file)
		if err != nil {
			return
		}
		p := Config{Classes: c}.profile()
		if class := p.classes[p.classOf(name, max(0, uncached))]; class.Quantum < 1 {
			t.Errorf("class %+v", class)
		}
	})
}
