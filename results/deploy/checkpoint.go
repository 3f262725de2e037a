package deploy

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
)

// checkpoint is what a server loads.
type checkpoint struct {
	// model is a name on Hugging Face, a path, or [unknownModel].
	model string
	// experts says that it is a mixture of experts, mtp that it has layers of its own to propose tokens.
	experts, mtp bool
	// quantise is the number format that the server has to make of the weights; empty when the checkpoint has the right one.
	quantise string
}

// unknownModel stands where a configuration does not say which model it is about.
const unknownModel = "REPLACE-WITH-MODEL"

// chooseCheckpoint returns what a worker loads. Where the catalogue has no checkpoint in the number format of the timing, it is one
// in another format.
func (d *deployment) chooseCheckpoint(w worker) checkpoint {
	t := w.Timing
	if t.Model == "" {
		if d.Checkpoint == "" {
			d.lacks("timing.model", "not given", "replace %s in the files by the model that you serve", unknownModel)
			return checkpoint{model: unknownModel}
		}
		return checkpoint{model: d.Checkpoint}
	}
	if perfmodel.IsModelFile(t.Model) {
		c := checkpoint{model: filepath.ToSlash(filepath.Dir(t.Model)), experts: t.EP > 1}
		if d.Checkpoint != "" {
			c.model = d.Checkpoint
		} else {
			d.check("The model is the folder of `%s`; see that the weights are there.", t.Model)
		}
		return c
	}
	m, _, err := catalogue.FindModel(t.Model)
	if err != nil { // of tables of the user's own
		if d.Checkpoint != "" {
			return checkpoint{model: d.Checkpoint}
		}
		return checkpoint{model: t.Model}
	}
	dtype := t.DType
	if dtype == "" {
		dtype = m.DType()
	}
	c := checkpoint{model: d.Checkpoint, experts: m.IsMoE(), mtp: strings.HasPrefix(m.ID, "deepseek-v3")}
	if c.model != "" {
		return c
	}
	fitting := checkpoints(m, dtype)
	if len(fitting) == 0 {
		fitting = checkpoints(m, m.DType())
		c.quantise = dtype
	}
	c.model = cmp.Or(usual(fitting), m.ID)
	if others := without(fitting, c.model); len(others) > 0 {
		d.check("`%s` stands for every checkpoint of this shape, such as %s.", c.model, strings.Join(others, ", "))
	}
	return c
}

// checkpoints lists those of a model in a number format that have its whole context length.
func checkpoints(m catalogue.Model, dtype string) []string {
	var out []string
	for _, h := range m.HuggingFace {
		if h.DType == dtype && h.ContextLength == 0 {
			out = append(out, h.Path)
		}
	}
	return out
}

// usual picks the checkpoint that most people serve: one that follows instructions, of several the one with the shortest name.
func usual(paths []string) string {
	best := ""
	for _, p := range paths {
		if strings.Contains(p, "Instruct") && (best == "" || len(p) < len(best)) {
			best = p
		}
	}
	if best == "" && len(paths) > 0 {
		best = paths[0]
	}
	return best
}

func without(list []string, one string) []string {
	var out []string
	for _, s := range list {
		if s != one && len(out) < 3 {
			out = append(out, s)
		}
	}
	return out
}
