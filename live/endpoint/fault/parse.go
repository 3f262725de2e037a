package fault

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// maxRules bounds the rules of a file.
const maxRules = 10_000

// Parse reads a rule such as "status=429,share=0.1" or "drop,after_tokens=20,every=100". The error says everything that is wrong
// with it.
func Parse(text string) (Rule, error) {
	var r Rule
	var problems []problem
	given := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		key = strings.TrimSpace(key)
		if given[key] && key != "" {
			problems = append(problems, problem{key, key + " is given twice"})
		}
		given[key] = true
		if text := r.set(key, strings.TrimSpace(value)); text != "" {
			problems = append(problems, problem{key, text})
		}
	}
	return r.checked(text, problems)
}

// ParseFile reads a YAML list of rules, each a mapping with the keys of [Parse], such as {status: 429, share: 0.1} or
// {drop: true, after_tokens: 20}. The error says everything that is wrong with any of them.
func ParseFile(data []byte) ([]Rule, error) {
	list, err := readList(data)
	if err != nil {
		return nil, fmt.Errorf("must be a YAML list of rules such as {status: 429, share: 0.1}: %s", strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	if len(list) > maxRules {
		return nil, fmt.Errorf("has %d rules; %d are allowed", len(list), maxRules)
	}
	rules := make([]Rule, 0, len(list))
	var problems []error
	for i, keys := range list {
		r, err := fromMap(keys)
		if err != nil {
			problems = append(problems, fmt.Errorf("rule %d: %w", i+1, err))
		}
		rules = append(rules, r)
	}
	return rules, errors.Join(problems...)
}

// readList reads a list of mappings. Some texts make the YAML library panic; they are refused like any other.
func readList(data []byte) (list []map[string]any, err error) {
	defer func() {
		if recover() != nil {
			list, err = nil, errors.New("the YAML cannot be read")
		}
	}()
	err = yaml.Unmarshal(data, &list)
	return list, err
}

func fromMap(keys map[string]any) (Rule, error) {
	var r Rule
	var problems []problem
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value := fmt.Sprint(keys[key])
		switch v := keys[key].(type) {
		case map[string]any, []any, nil:
			problems = append(problems, problem{key, key + " must be one value"})
			continue
		case bool:
			if !v {
				problems = append(problems, problem{key, key + " is false; leave it out"})
				continue
			}
			value = ""
		}
		if text := r.set(key, value); text != "" {
			problems = append(problems, problem{key, text})
		}
	}
	return r.checked("", problems)
}

// checked adds what is wrong with the rule as a whole, without what has been said of a key already.
func (r *Rule) checked(text string, said []problem) (Rule, error) {
	all := make([]string, 0, len(said))
	for _, p := range said {
		all = append(all, p.text)
	}
	for _, p := range r.problems() {
		if !slices.ContainsFunc(said, func(s problem) bool { return s.key == p.key || p.key == "" }) {
			all = append(all, p.text)
		}
	}
	if len(all) == 0 {
		return *r, nil
	}
	if text != "" {
		text = strconv.Quote(text) + ": "
	}
	return *r, errors.New(text + strings.Join(all, "; "))
}

// set sets what one key of a rule says, and returns what is wrong with it.
func (r *Rule) set(key, value string) string {
	switch Kind(key) {
	case Status, Stall, Slow, Drop, MalformedSSE, ErrorEvent, NoDone:
		return r.setKind(Kind(key), value)
	}
	var err error
	switch key {
	case "retry_after":
		r.RetryAfter, err = time.ParseDuration(value)
	case "after_tokens":
		r.AfterTokens, err = strconv.Atoi(value)
	case "share":
		if r.Share, err = strconv.ParseFloat(value, 64); err == nil && r.Share == 0 {
			return "share=0 is no request; leave the rule out"
		}
	case "every":
		if r.Every, err = strconv.Atoi(value); err == nil && r.Every == 0 {
			return "every=0 is no request; leave the rule out"
		}
	case "times":
		if r.Times, err = strconv.Atoi(value); err == nil && r.Times == 0 {
			return "times=0 is never; leave the rule out"
		}
	case "from":
		r.From, err = time.ParseDuration(value)
	case "until":
		if r.Until, err = time.ParseDuration(value); err == nil && r.Until == 0 {
			return "until=0 is never; leave the rule out"
		}
	case "session":
		r.Session = value
	case "model":
		r.Model = value
	case "path":
		r.Path = value
	default:
		return fmt.Sprintf("%q is not known; use %s, and after_tokens, every, from, model, path, retry_after, session, share, times, until", key, kindNames())
	}
	if err != nil {
		return unreadable(key, value)
	}
	return ""
}

func (r *Rule) setKind(kind Kind, value string) string {
	if r.Kind != "" && r.Kind != kind {
		return fmt.Sprintf("%s and %s are two rules; write one for each", r.Kind, kind)
	}
	r.Kind = kind
	var err error
	switch kind {
	case Status:
		r.Code, err = strconv.Atoi(value)
	case Stall:
		r.For, err = time.ParseDuration(value)
	case Slow:
		r.Factor, err = strconv.ParseFloat(strings.TrimSuffix(value, "x"), 64)
	default:
		if value != "" {
			return fmt.Sprintf("%s takes no value", kind)
		}
	}
	if err != nil {
		return unreadable(string(kind), value)
	}
	return ""
}

// unreadable says what a value should be.
func unreadable(key, value string) string {
	want := map[string]string{
		"status": "a status such as 429", "stall": "a duration such as 5s", "slow": "a factor such as 3x", "retry_after": "a duration such as 1s",
		"after_tokens": "a whole number", "share": "a share such as 0.1", "every": "a whole number", "times": "a whole number",
		"from": "a duration such as 30s", "until": "a duration such as 90s",
	}
	return fmt.Sprintf("%s=%s cannot be read; give %s", key, value, want[key])
}
