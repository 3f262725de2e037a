package deploy

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
)

// notes collects what readers of the files have to know, each thing once.
type notes struct {
	// missing is what the servers have no setting for, checks what to look at when they run.
	missing, checks []string
}

// lacks notes a setting that has no counterpart.
func (n *notes) lacks(path string, value any, format string, args ...any) {
	n.missing = once(n.missing, fmt.Sprintf("`%s: %v`: %s", path, value, fmt.Sprintf(format, args...)))
}

// check notes something to look at.
func (n *notes) check(format string, args ...any) {
	n.checks = once(n.checks, fmt.Sprintf(format, args...))
}

func once(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// simulated notes the settings that only a simulation has, and those that only Dynamo has, whatever the server is.
func (d *deployment) simulated() {
	c := d.Config
	if c.Compat != rules.Default {
		d.lacks("compat", c.Compat, "the rules of that simulator, not of a server; servers behave as the default rules do")
	}
	for _, w := range d.workers {
		e := w.Engine
		for _, s := range []struct {
			path  string
			value float64
		}{{"engine.speedup_ratio", e.SpeedupRatio}, {"engine.decode_speedup_ratio", e.DecodeSpeedupRatio}} {
			if s.value != 0 && s.value != 1 {
				d.lacks(s.path, s.value, "passes were assumed to be that much faster; no setting makes them so")
			}
		}
		if w.Timing.Backend != "" && w.Timing.Backend != d.backend.name {
			d.lacks("timing.backend", w.Timing.Backend, "passes took as long as those of %s, but the server is %s", w.Timing.Backend, d.backend.title)
		}
		for _, t := range []struct{ path, value string }{
			{"timing.gemm_dtype", w.Timing.GEMMDType}, {"timing.moe_dtype", w.Timing.MoEDType}, {"timing.fmha_dtype", w.Timing.FMHADType},
		} {
			if t.value != "" {
				d.lacks(t.path, t.value, "the checkpoint and the server decide it")
			}
		}
		d.checkTable(w)
		if w.role == rolePrefill && e.KVTransferTimingMode == engine.TransferFullPrompt {
			d.lacks("engine.kv_transfer_timing_mode", e.KVTransferTimingMode, "servers leave out what the decode worker has cached, if they can")
		}
		if w.role == rolePrefill && e.KVTransferBandwidth > 0 {
			d.check("The KV cache of a prompt was taken to move at %v GB/s for each GPU (`engine.kv_transfer_bandwidth`); measure what the network between the workers gives.", e.KVTransferBandwidth)
		}
	}
	d.unroutable()
	d.untiered()
	switch c.Planner.Policy {
	case planner.PolicyTargetTracking:
		d.lacks("planner.policy", c.Planner.Policy, "Dynamo's planner has no such policy; a HorizontalPodAutoscaler with this metric does the same. The files have the number of workers at the beginning")
	case planner.PolicyForesight:
		d.lacks("planner.policy", c.Planner.Policy, "it knows the future, which nothing that can be deployed does. The files have the number of workers at the beginning")
	}
}

// checkTable says which releases the figures are for, and what the KV pool was taken to hold.
func (d *deployment) checkTable(w worker) {
	if w.Timing.BackendVersion != "" {
		d.check("The times of passes were measured with %s %s; another release may be faster or slower.", d.backend.title, w.Timing.BackendVersion)
	}
	if w.Timing.Source == perfmodel.SourceAnalytic {
		band := w.Timing.Provenance()
		d.check("The times of passes were not measured: a roofline of the GPU gave them (analytic timing), ±%.2g %% in prefill and ±%.2g %% in decode. Measure before you rely on them.",
			band.PrefillErrorPct, band.DecodeErrorPct)
	}
	what := "worker"
	if w.role != "" {
		what = w.role + " worker"
	}
	if !w.ownPool {
		d.check("A %s was taken to have room for %d tokens of KV cache. The server measures its memory when it starts and logs the size of its pool; compare.", what, w.Engine.NumGPUBlocks*w.Engine.BlockSize)
	}
	if w.nodes() > 1 {
		d.check("A %s occupies %d nodes. %s does that; the script by itself starts the part of one node and needs the arguments of %s for several.", what, w.nodes(), GraphFile, d.backend.title)
	}
}

// unroutable notes what Dynamo's router does otherwise.
func (d *deployment) unroutable() {
	r := d.Config.Router
	switch r.Policy {
	case router.PolicyPrefixAffinity:
		d.lacks("router.policy", r.Policy, "Dynamo has no such mode; the graph routes round-robin. kv_router has the same aim")
	case router.PolicySessionAffinity:
		d.check("Dynamo forgets the worker of a session after %d s without a turn; the simulation never did.", sessionAffinitySeconds)
	case router.PolicyKVRouter:
		if r.RouterQueuePolicy == router.QueueLCFS {
			d.lacks("router.router_queue_policy", r.RouterQueuePolicy, "Dynamo 1.3.1 has fcfs and wspt")
		}
		if r.RouterPolicyConfig != "" {
			d.lacks("router.router_policy_config", r.RouterPolicyConfig, "mount the file into the Frontend and name it with --router-policy-config")
		}
	}
}

// untiered notes what servers decide themselves about lower memory tiers.
func (d *deployment) untiered() {
	t, standard := d.Config.Tiers, tiers.DefaultConfig()
	if !t.Enabled() {
		return
	}
	if t.EnableG4Storage {
		d.lacks("tiers.enable_g4_storage", true, "the files know no address of an object store")
	}
	if t.NumG4Blocks > 0 {
		d.lacks("tiers.num_g4_blocks", t.NumG4Blocks, "the object store itself decides how much it holds")
	}
	if t.OnboardPolicy != standard.OnboardPolicy {
		d.lacks("tiers.onboard_policy", t.OnboardPolicy, "servers load whatever they find in a lower tier")
	}
	if t.OffloadPolicy != standard.OffloadPolicy && d.backend.name != engine.TypeSGLang {
		d.lacks("tiers.offload_policy", t.OffloadPolicy, "%s decides when it copies blocks", d.backend.title)
	}
	if t.OffloadBatchSize != standard.OffloadBatchSize {
		d.lacks("tiers.offload_batch_size", t.OffloadBatchSize, "%s decides how many blocks it copies at a time", d.backend.title)
	}
	if t.WorkersPerNode > 0 {
		d.lacks("tiers.workers_per_node", t.WorkersPerNode, "Kubernetes decides which workers share a node; a podAntiAffinity tells it")
	}
	var links []string
	given, defaults := reflect.ValueOf(t), reflect.ValueOf(standard)
	for i := range given.NumField() {
		key, _, _ := strings.Cut(given.Type().Field(i).Tag.Get("json"), ",")
		if (strings.HasPrefix(key, "bandwidth_") || strings.HasPrefix(key, "latency_")) && !given.Field(i).Equal(defaults.Field(i)) {
			links = append(links, fmt.Sprintf("`tiers.%s: %v`", key, given.Field(i)))
		}
	}
	if len(links) > 0 {
		d.check("The links to the lower memory tiers were taken to be as in %s; measure them.", strings.Join(links, ", "))
	}
}

// notesFile is the text of [NotesFile].
func (d *deployment) notesFile(files []File) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", oneLine(d.Name))
	for _, w := range d.workers {
		fmt.Fprintf(&b, "- `%s`, served by %s: %s\n", w.model, d.backend.title, w.describe())
	}
	b.WriteString("\n| file | what it is for |\n|---|---|\n")
	for _, f := range files {
		fmt.Fprintf(&b, "| %s | %s |\n", f.Name, f.Note)
	}
	section(&b, "What the servers have no setting for", d.missing, "Nothing: every setting of the simulation is in the files.")
	section(&b, "What to check", d.checks, "")
	return b.Bytes()
}

// section writes a list under a heading; an empty one is replaced by a text, and left out without it.
func section(b *bytes.Buffer, heading string, list []string, empty string) {
	if len(list) == 0 && empty == "" {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", heading)
	if len(list) == 0 {
		b.WriteString(empty + "\n")
	}
	for _, text := range list {
		fmt.Fprintf(b, "- %s\n", text)
	}
}
