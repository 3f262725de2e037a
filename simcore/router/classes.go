package router

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/servegrid/servegrid/simcore/problem"
)

// Classes is the content of a policy file: classes of requests with queues of their own, for all models or by model.
type Classes struct {
	root   *profile
	models map[string]*profile
	digest string
}

// Digest is a hex SHA-256 of the file, so that files of the same content count as one.
func (c *Classes) Digest() string { return c.digest }

// Class is a class of requests with a queue of its own.
type Class struct {
	// Name is the class's name.
	Name string
	// QueuePolicy orders its queue: fcfs or wspt, and lcfs where there is just one class.
	QueuePolicy string
	// Quantum is the uncached tokens that the class may send in a round of all classes.
	Quantum int64
	// A worker is busy for the class when it has more than PrefillBusyTokens prompt tokens to compute, or more than
	// PrefillBusyFraction of the budget of a pass; [Unset] leaves a bound out.
	PrefillBusyTokens   int64
	PrefillBusyFraction float64
	// What may wait for each worker until the next request is one too many: requests, tokens of their prompts, and tokens of
	// those that are cached; [Unset] leaves a limit out.
	RequestQueueLimit, RawTokenQueueLimit, CachedTokenQueueLimit int64
}

// profile is the classes of a model, and which of them a request belongs to.
type profile struct {
	classes  []Class
	explicit map[string]int // class by its own name
	families map[string]int // row of table by family name
	family   int            // the row of requests that name no family
	floors   []int64        // least uncached tokens of each bucket, rising from 0
	table    []int          // class by family and bucket
}

// one is the only class of a router without a policy file.
func (c Config) one() *profile {
	return &profile{
		classes: []Class{{
			Name: "default", QueuePolicy: c.RouterQueuePolicy, Quantum: 1,
			PrefillBusyTokens: Unset, PrefillBusyFraction: c.RouterQueueThreshold,
			RequestQueueLimit: Unset, RawTokenQueueLimit: Unset, CachedTokenQueueLimit: Unset,
		}},
		floors: []int64{0}, table: []int{0},
	}
}

// profile returns the classes of the configured model: its own, or those for all models, or just one.
func (c Config) profile() *profile {
	if c.Classes != nil {
		if p := c.Classes.models[c.ModelName]; p != nil {
			return p
		}
		if c.Classes.root != nil {
			return c.Classes.root
		}
	}
	return c.one()
}

// classOf returns the class of a request: the one that it names if that has no family, else that of the family which it
// names and the bucket of its uncached tokens.
func (p *profile) classOf(name string, uncached int64) int {
	if class, ok := p.explicit[name]; ok {
		return class
	}
	family, ok := p.families[name]
	if !ok {
		family = p.family
	}
	bucket := len(p.floors) - 1
	for p.floors[bucket] > uncached {
		bucket--
	}
	return p.table[family*len(p.floors)+bucket]
}

// queues reports whether a class ever makes requests wait.
func (c *Class) queues() bool { return c.PrefillBusyTokens != Unset || c.PrefillBusyFraction != Unset }

// busy reports whether a worker with so many prompt tokens to compute takes no more of the class.
func (c *Class) busy(tokens int64, budget float64) bool {
	return c.PrefillBusyTokens != Unset && tokens > c.PrefillBusyTokens ||
		c.PrefillBusyFraction != Unset && float64(tokens) > c.PrefillBusyFraction*budget
}

// policyFile is a policy file as YAML holds it.
type policyFile struct {
	DefaultPolicyFamily *string        `yaml:"default_policy_family"`
	UncachedISLBuckets  []policyBucket `yaml:"uncached_isl_buckets"`
	PolicyClasses       []policyClass  `yaml:"policy_classes"`
	// Models holds profiles that replace the file's own for a model.
	Models map[string]policyProfile `yaml:"models"`
}

type policyProfile struct {
	DefaultPolicyFamily *string        `yaml:"default_policy_family"`
	UncachedISLBuckets  []policyBucket `yaml:"uncached_isl_buckets"`
	PolicyClasses       []policyClass  `yaml:"policy_classes"`
}

type policyBucket struct {
	MinTokens int64  `yaml:"min_tokens"`
	Bucket    string `yaml:"bucket"`
}

type policyClass struct {
	Name                     string   `yaml:"name"`
	PolicyFamily             *string  `yaml:"policy_family"`
	CacheBucket              *string  `yaml:"cache_bucket"`
	QueuePolicy              string   `yaml:"queue_policy"`
	Quantum                  int64    `yaml:"quantum"`
	PrefillBusyThreshold     *int64   `yaml:"prefill_busy_threshold"`
	PrefillBusyThresholdFrac *float64 `yaml:"prefill_busy_threshold_frac"`
	RequestQueueLimit        *int64   `yaml:"request_queue_limit_per_worker"`
	RawISLTokenQueueLimit    *int64   `yaml:"raw_isl_token_queue_limit_per_worker"`
	CachedTokenQueueLimit    *int64   `yaml:"cached_token_queue_limit_per_worker"`
}

// ParseClasses reads a policy file, whose format is the reference's (spec/engine.md §11.4). Bad YAML is an error with its
// place; what it says wrongly is a [problem.List] with all that is wrong.
func ParseClasses(data []byte) (_ *Classes, err error) {
	// The library is known to panic on some malformed input; for the user that is a syntax error.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("this is not valid YAML (%v)", r)
		}
	}()
	var file policyFile
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		return nil, err
	}
	var l problem.List
	sum := sha256.Sum256(data)
	c := &Classes{models: map[string]*profile{}, digest: hex.EncodeToString(sum[:])}
	if root := (policyProfile{file.DefaultPolicyFamily, file.UncachedISLBuckets, file.PolicyClasses}); root.DefaultPolicyFamily != nil || root.UncachedISLBuckets != nil || root.PolicyClasses != nil {
		c.root = root.resolve("", &l)
	} else if len(file.Models) == 0 {
		l.Add("policy_classes", "", "give default_policy_family, uncached_isl_buckets and policy_classes, or models with those")
	}
	for _, name := range slices.Sorted(maps.Keys(file.Models)) {
		if name == "" {
			l.Add("models", `""`, "give the model's name")
		}
		c.models[name] = file.Models[name].resolve("models."+name+".", &l)
	}
	return c, l.Err()
}

// resolve checks a profile at a place of the file and looks up what it names.
func (f policyProfile) resolve(at string, l *problem.List) *profile {
	p := &profile{explicit: map[string]int{}, families: map[string]int{}}
	buckets := f.resolveBuckets(at, p, l)
	if len(f.PolicyClasses) == 0 {
		l.Add(at+"policy_classes", "", "give one class or more")
	}
	names := map[string]bool{}
	for i, class := range f.PolicyClasses {
		place := fmt.Sprintf("%spolicy_classes[%d].", at, i)
		if names[class.Name] {
			l.Add(place+"name", class.Name, "another class has this name")
		}
		names[class.Name] = true
		p.classes = append(p.classes, class.resolve(place, l))
		p.place(place, i, class, buckets, l)
	}
	for _, name := range slices.Sorted(maps.Keys(p.explicit)) {
		if _, ok := p.families[name]; ok {
			l.Add(at+"policy_classes", name, "a class without a family has the name of a family")
		}
	}
	p.checkTable(at, buckets, l)
	family, ok := "", false
	if f.DefaultPolicyFamily != nil {
		family = *f.DefaultPolicyFamily
		p.family, ok = p.families[family]
	}
	if !ok {
		l.Add(at+"default_policy_family", family, "name a family that a class has")
	}
	return p
}

// resolveBuckets returns the number of each bucket.
func (f policyProfile) resolveBuckets(at string, p *profile, l *problem.List) map[string]int {
	buckets := map[string]int{}
	if len(f.UncachedISLBuckets) == 0 {
		l.Add(at+"uncached_isl_buckets", "", "give one bucket or more, the first with min_tokens 0")
	}
	for i, b := range f.UncachedISLBuckets {
		place := fmt.Sprintf("%suncached_isl_buckets[%d].", at, i)
		checkName(place+"bucket", b.Bucket, l)
		if _, ok := buckets[b.Bucket]; ok {
			l.Add(place+"bucket", b.Bucket, "another bucket has this name")
		}
		switch {
		case i == 0 && b.MinTokens != 0:
			l.Add(place+"min_tokens", b.MinTokens, "the first bucket starts at 0")
		case i > 0 && b.MinTokens <= f.UncachedISLBuckets[i-1].MinTokens:
			l.Add(place+"min_tokens", b.MinTokens, "give more than the bucket before it")
		}
		buckets[b.Bucket] = i
		p.floors = append(p.floors, b.MinTokens)
	}
	return buckets
}

// noClass marks a family and bucket without a class.
const noClass = -1

// place enters a class in the table, or among those that are named alone.
func (p *profile) place(at string, number int, class policyClass, buckets map[string]int, l *problem.List) {
	switch {
	case class.PolicyFamily == nil && class.CacheBucket == nil:
		p.explicit[class.Name] = number
		return
	case class.PolicyFamily == nil:
		l.Add(at+"policy_family", "", "give it with cache_bucket, or neither for a class that requests name themselves")
		return
	case class.CacheBucket == nil:
		l.Add(at+"cache_bucket", "", "give it with policy_family, or neither for a class that requests name themselves")
		return
	}
	checkName(at+"policy_family", *class.PolicyFamily, l)
	family, known := p.families[*class.PolicyFamily]
	if !known {
		family = len(p.families)
		p.families[*class.PolicyFamily] = family
		p.table = append(p.table, slices.Repeat([]int{noClass}, len(p.floors))...)
	}
	bucket, known := buckets[*class.CacheBucket]
	if !known {
		l.Add(at+"cache_bucket", *class.CacheBucket, "name one of uncached_isl_buckets")
		return
	}
	cell := &p.table[family*len(p.floors)+bucket]
	if *cell != noClass {
		l.Add(at+"cache_bucket", *class.CacheBucket, "class %s has this family and bucket", p.classes[*cell].Name)
	}
	*cell = number
}

// checkTable reports families without a class for some bucket.
func (p *profile) checkTable(at string, buckets map[string]int, l *problem.List) {
	for _, family := range slices.Sorted(maps.Keys(p.families)) {
		for _, bucket := range slices.Sorted(maps.Keys(buckets)) {
			if p.table[p.families[family]*len(p.floors)+buckets[bucket]] == noClass {
				l.Add(at+"policy_classes", "", "family %s has no class for bucket %s", family, bucket)
			}
		}
	}
}

// Bounds of a policy file; beyond them sums overflow long before any queue is that long.
const maxPolicyNumber = 1 << 40

// resolve checks the settings of a class.
func (c policyClass) resolve(at string, l *problem.List) Class {
	checkName(at+"name", c.Name, l)
	if c.Quantum < 1 || c.Quantum > maxPolicyNumber {
		l.Add(at+"quantum", c.Quantum, "give 1 to %d tokens", int64(maxPolicyNumber))
	}
	if c.QueuePolicy == "" {
		c.QueuePolicy = QueueFCFS
	}
	if c.QueuePolicy != QueueFCFS && c.QueuePolicy != QueueWSPT {
		l.Add(at+"queue_policy", c.QueuePolicy, "use one of: %s, %s", QueueFCFS, QueueWSPT)
	}
	limit := func(key string, v *int64) int64 {
		if v == nil {
			return Unset
		}
		if *v < 0 || *v > maxPolicyNumber {
			l.Add(at+key, *v, "give 0 to %d, or leave it out for no limit", int64(maxPolicyNumber))
		}
		return *v
	}
	out := Class{
		Name: c.Name, QueuePolicy: c.QueuePolicy, Quantum: c.Quantum,
		PrefillBusyTokens:     limit("prefill_busy_threshold", c.PrefillBusyThreshold),
		PrefillBusyFraction:   Unset,
		RequestQueueLimit:     limit("request_queue_limit_per_worker", c.RequestQueueLimit),
		RawTokenQueueLimit:    limit("raw_isl_token_queue_limit_per_worker", c.RawISLTokenQueueLimit),
		CachedTokenQueueLimit: limit("cached_token_queue_limit_per_worker", c.CachedTokenQueueLimit),
	}
	switch f := c.PrefillBusyThresholdFrac; {
	case f == nil && out.PrefillBusyTokens == Unset:
		out.PrefillBusyFraction = DefaultConfig().RouterQueueThreshold
	case f == nil:
	case !(*f >= 0) || math.IsInf(*f, 0):
		l.Add(at+"prefill_busy_threshold_frac", *f, "give a finite number of 0 or more")
	default:
		out.PrefillBusyFraction = *f
	}
	return out
}

// validName is what the reference can use in the names of its metrics.
var validName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

func checkName(at, name string, l *problem.List) {
	if !validName.MatchString(name) {
		l.Add(at, fmt.Sprintf("%q", name), "use letters, digits, and the signs _ . -")
	}
}
