package perfmodel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
	"github.com/servegrid/servegrid/simcore/perfmodel/roofline"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// Resolution is a configuration with what it left open filled in.
type Resolution struct {
	// Config names the source, and everything by its canonical name.
	Config Config
	// Memory says what the model needs of a GPU; nil when source or model do not tell.
	Memory *memory.Requirements
	// ContextLength is the longest sequence that the model was made for, in tokens; 0 when it is not known.
	ContextLength int
}

// Resolve fills in what the configuration leaves open: the source, the release of the backend, the variant of the
// model, its parallelism. engineType is the default of the backend. The problems are about the keys of Config.
func (c Config) Resolve(set rules.Set, engineType string) (Resolution, problem.List) {
	gpuProblems := c.nameGPU()
	c.Source = c.ChosenSource()
	problems := append(c.validate(), gpuProblems...)
	if slices.ContainsFunc(problems, func(p problem.Problem) bool { return slices.Contains(deploymentKeys, p.Path) }) {
		return Resolution{Config: c}, problems
	}
	out, found := c.resolveSource(set, engineType)
	return out, append(problems, found...)
}

// deploymentKeys are the settings without which nothing can be said about the others.
var deploymentKeys = []string{"source", "gpu", "model", "backend", "tp", "dp", "ep", "tables", "profile"}

func (c Config) resolveSource(set rules.Set, engineType string) (Resolution, problem.List) {
	if c.knowsGPU() {
		if l := c.missing(); len(l) > 0 {
			return Resolution{Config: c}, l
		}
		if c.Backend == "" {
			c.Backend = engineType
		}
	}
	switch c.Source {
	case SourceTable:
		return c.resolveTable(set)
	case SourceAnalytic:
		return c.resolveAnalytic()
	case SourceProfile:
		return c.resolveProfile(set, engineType)
	}
	return Resolution{Config: c}, nil
}

// resolveProfile reads the profile. Where GPU and model are named, memory and context length are those that tables or
// roofline would give.
func (c Config) resolveProfile(set rules.Set, engineType string) (Resolution, problem.List) {
	var l problem.List
	if c.Profile == "" {
		l.Add("profile", "", "source profile needs the file of a profile")
	} else if _, err := readProfile(c.Profile); err != nil {
		l.Add("profile", c.Profile, "%v", err)
	}
	if c.Model == "" {
		return Resolution{Config: c}, l
	}
	if c.GPU == "" {
		m, _, err := readModel(c.Model)
		if err != nil {
			return Resolution{Config: c}, append(l, refusal("model", c.Model, err)...)
		}
		return Resolution{Config: c, ContextLength: m.ContextLength}, l
	}
	served := c
	served.Source, served.Profile, served.PrefillMs, served.DecodeMs = SourceAuto, "", 0, 0
	out, problems := served.Resolve(set, engineType)
	out.Config.Source, out.Config.Profile = SourceProfile, c.Profile
	return out, append(l, problems...)
}

// nameGPU gives the GPU its canonical name; when it has none, the problems name an unknown model too. A folder of
// tables may know GPUs that the catalogue does not.
func (c *Config) nameGPU() problem.List {
	if c.GPU == "" {
		return nil
	}
	if c.Tables != "" {
		if set, err := tableSet(c.Tables); err == nil && slices.Contains(set.Systems(), c.GPU) {
			return nil
		}
	}
	gpu, err := catalogue.FindGPU(c.GPU)
	if err == nil {
		c.GPU = gpu.ID
		return nil
	}
	l := refusal("gpu", c.GPU, err)
	if c.Model != "" && c.Tables == "" {
		if _, _, err := readModel(c.Model); err != nil {
			l = append(l, refusal("model", c.Model, err)...)
		}
	}
	return l
}

// refusal is the problem of a name that the catalogue does not have, or of a file that cannot be read.
func refusal(key, value string, err error) problem.List {
	var l problem.List
	var unknown *catalogue.UnknownError
	if errors.As(err, &unknown) {
		l.Add(key, value, "%s", unknown.Instead())
	} else {
		l.Add(key, value, "%v", err)
	}
	return l
}

// ChosenSource is the source, or what "auto" stands for.
func (c Config) ChosenSource() string {
	switch {
	case c.Source != SourceAuto:
		return c.Source
	case c.Profile != "":
		return SourceProfile
	case c.GPU == "" && c.Model == "":
		return SourcePolynomial
	case c.Tables != "":
		return SourceTable
	case IsModelFile(c.Model) || !slices.Contains(tables.Embedded().Systems(), c.GPU) && c.GPU != "":
		return SourceAnalytic
	}
	if m, _, err := catalogue.FindModel(c.Model); err == nil && !tables.Embedded().HasModel(c.GPU, m.ID) {
		return SourceAnalytic
	}
	return SourceTable
}

// IsModelFile reports whether a model is given by the path of its Hugging Face config.json.
func IsModelFile(model string) bool { return strings.HasSuffix(strings.ToLower(model), ".json") }

// Files returns the settings that are paths of files.
func (c *Config) Files() []*string {
	files := []*string{&c.Profile, &c.Tables}
	if IsModelFile(c.Model) {
		files = append(files, &c.Model)
	}
	return files
}

// missing names what a source that prices a GPU and a model was not told.
func (c Config) missing() problem.List {
	var l problem.List
	if c.GPU == "" {
		l.Add("gpu", "", "source %s needs a GPU, such as h200_sxm; `servegrid perf list` shows them", c.Source)
	}
	if c.Model == "" {
		l.Add("model", "", "source %s needs a model, such as llama-3.1-8b; `servegrid perf list` shows them", c.Source)
	}
	return l
}

func (c Config) resolveTable(set rules.Set) (Resolution, problem.List) {
	data, err := tableSet(c.Tables)
	if err != nil {
		var l problem.List
		l.Add("tables", c.Tables, "%v", err)
		return Resolution{Config: c}, l
	}
	if set.UncorrectedTables {
		c.Corrections = false
	}
	if c.BackendVersion == "" {
		c.BackendVersion = set.Versions.Of(c.Backend)
	}
	contextLength := c.nameModel()
	row, problems := data.Find(c.query())
	if c.Tables != "" {
		problems = c.checkTables(data, row, problems)
	}
	if len(problems) > 0 {
		c.offerRoofline(problems)
		return Resolution{Config: c}, problems
	}
	c.GPU, c.Model, c.DType, c.Backend, c.BackendVersion = row.System, row.Model, row.DType, row.Backend, row.BackendVersion
	c.TP, c.DP, c.EP = row.TP, row.DP, row.MoEEP
	plain := c
	plain.GEMMDType, plain.MoEDType, plain.FMHADType, plain.KVCacheDType = "", "", "", ""
	if same, l := data.Find(plain.query()); len(l) == 0 && same == row {
		c = plain // the variant's name says it all
	}
	c.KVCacheDType = row.KV
	need := row.Memory()
	return Resolution{Config: c, Memory: &need, ContextLength: contextLength}, nil
}

// offerRoofline adds to the problem of a deployment that was not measured that it can be priced all the same.
func (c Config) offerRoofline(problems problem.List) {
	last := &problems[len(problems)-1]
	if !slices.Contains([]string{"model", "dtype", "tp", "dp", "ep", "backend"}, last.Path) {
		return
	}
	c.Source, c.BackendVersion, c.Tables = SourceAnalytic, "", ""
	c.GEMMDType, c.MoEDType, c.FMHADType, c.KVCacheDType = "", "", "", ""
	if _, _, refused := c.roofline(); len(refused) == 0 {
		last.Allowed += "; source: analytic prices it by a roofline"
	}
}

// checkTables blames a folder of the user's own for damage to its files, before anything is simulated. The row is nil when
// there are problems already.
func (c Config) checkTables(data *tables.Set, row *tables.Config, found problem.List) problem.List {
	_, err := data.Configs(c.GPU)
	switch {
	case err == nil && row == nil:
		return found
	case err == nil:
		if _, err = data.Load(row, c.Corrections); err == nil {
			return nil
		}
	case !slices.Contains(data.Systems(), c.GPU):
		return found
	}
	var l problem.List
	l.Add("tables", c.Tables, "%v", err)
	return l
}

// nameModel gives a model of the catalogue its short name, with the dtype of the checkpoint that was named, and returns
// its context length. Tables of the user's own may know other models.
func (c *Config) nameModel() (contextLength int) {
	m, dtype, err := catalogue.FindModel(c.Model)
	if err != nil {
		return 0
	}
	open := c.DType == "" && c.GEMMDType == "" && c.MoEDType == ""
	if open && !strings.EqualFold(c.Model, m.ID) {
		c.DType = dtype
	}
	c.Model = m.ID
	return m.ContextLength
}

// query is what the configuration asks of tables.
func (c Config) query() tables.Query {
	return tables.Query{
		System: c.GPU, Model: c.Model, DType: c.DType, Backend: c.Backend, BackendVersion: c.BackendVersion,
		GEMM: c.GEMMDType, MoE: c.MoEDType, FMHA: c.FMHADType, KV: c.KVCacheDType,
		TP: c.TP, DP: c.DP, EP: c.EP, Corrections: c.Corrections,
	}
}

func (c Config) resolveAnalytic() (Resolution, problem.List) {
	r, resolved, problems := c.roofline()
	if len(problems) > 0 {
		return Resolution{Config: resolved}, problems
	}
	need := r.Memory()
	out := Resolution{Config: resolved, Memory: &need}
	if m, _, err := readModel(c.Model); err == nil {
		out.ContextLength = m.ContextLength
	}
	return out, nil
}

// roofline builds the analytic model and fills in the configuration.
func (c Config) roofline() (*roofline.Roofline, Config, problem.List) {
	var l problem.List
	gpu, err := catalogue.FindGPU(c.GPU)
	if err != nil {
		l = append(l, refusal("gpu", c.GPU, err)...)
	}
	model, dtype, err := readModel(c.Model)
	if err != nil {
		l = append(l, refusal("model", c.Model, err)...)
	}
	if len(l) > 0 {
		return nil, c, l
	}
	c.GPU = gpu.ID
	if !IsModelFile(c.Model) {
		c.Model = model.ID
	}
	if c.DType == "" {
		c.DType = dtype
	}
	if c.KVCacheDType == "" {
		c.KVCacheDType = "bfloat16" // as the tables spell it
		if model.KVDType(c.DType) == catalogue.FP8 {
			c.KVCacheDType = catalogue.FP8
		}
	}
	c.EP = max(1, c.EP)
	r, l := roofline.New(roofline.Deployment{
		GPU: gpu, Model: model, Backend: c.Backend, DType: c.DType, KVDType: c.KVCacheDType, TP: c.TP, DP: c.DP, EP: c.EP,
	})
	return r, c, l
}

// Row returns the row of tables that a resolved configuration prices passes with. Only source table has one.
func (c Config) Row() (*tables.Config, error) {
	_, row, err := c.row()
	return row, err
}

// row returns the row of tables, and the set that it is in.
func (c Config) row() (*tables.Set, *tables.Config, error) {
	if c.Source != SourceTable {
		return nil, nil, fmt.Errorf("timing.source: %s has no tables; only table has", c.Source)
	}
	data, err := tableSet(c.Tables)
	if err != nil {
		return nil, nil, fmt.Errorf("timing.tables: %w", err)
	}
	row, problems := data.Find(c.query())
	return data, row, problems.Under("timing").Err()
}

func newTableModel(c Config) (Model, error) {
	data, row, err := c.row()
	if err != nil {
		return nil, err
	}
	t, err := data.Load(row, c.Corrections)
	if err != nil {
		return nil, fmt.Errorf("timing tables of %s: %w", c.GPU, err)
	}
	m := newDecomposed(t, t, c)
	if !c.Corrections {
		m.draftLayers = row.Layers
	}
	return m, nil
}

func newAnalyticModel(c Config) (Model, error) {
	r, c, problems := c.roofline()
	if err := problems.Under("timing").Err(); err != nil {
		return nil, err
	}
	return newDecomposed(r, nil, c), nil
}
