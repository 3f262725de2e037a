// Package deploy turns the configuration of a point into files that one can deploy: a spec that simulates just this point,
// the command lines of vLLM, SGLang and TensorRT-LLM servers, and a DynamoGraphDeployment for Kubernetes. What the servers
// have no setting for is said in a file of its own.
//
// The names and defaults of flags are those of vLLM 0.23 to 0.33, SGLang 0.5.14 to 0.5.23, TensorRT-LLM 1.3 and Dynamo
// 1.3.1; the tests check every flag against lists taken from these releases.
package deploy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Plan is what shall be deployed.
type Plan struct {
	// Config is a resolved configuration, as [gridspec.Spec.Expand] gives it.
	Config gridspec.Config
	// Workload is what the spec of the point replays. The files for servers do not depend on it.
	Workload workload.Spec
	// Name labels the deployment; empty means "servegrid". Kubernetes gets it in a form that it allows.
	Name string
	// Checkpoint is the model that servers load: a name on Hugging Face or a path. Empty means the usual checkpoint of
	// timing.model in timing.dtype.
	Checkpoint string
	// GPUPrice is what a GPU of the point costs, for the spec; zero means what the catalogue says.
	GPUPrice metrics.GPUPrice
}

// File is one of the files of a deployment.
type File struct {
	// Name is the file's name, without a folder.
	Name string
	// Content is what is in it.
	Content []byte
	// Note says in one line what the file is for.
	Note string
	// Executable says that it is a script.
	Executable bool
}

// The names of the files that every deployment has.
const (
	// SpecFile is the spec that simulates the point.
	SpecFile = "servegrid.yaml"
	// GraphFile is the DynamoGraphDeployment.
	GraphFile = "dynamo.yaml"
	// NotesFile says what the servers have no setting for.
	NotesFile = "NOTES.md"
)

// Files returns the files of a deployment: [SpecFile], a script for the servers of each pool, [GraphFile] and [NotesFile].
// Equal plans give equal bytes. The error is about a configuration that no server takes; one that [gridspec.Spec.Expand] has
// checked is none.
func Files(p Plan) ([]File, error) {
	d, err := newDeployment(p)
	if err != nil {
		return nil, err
	}
	files := []File{{
		Name: SpecFile, Note: "simulates this configuration: servegrid sweep " + SpecFile,
		Content: gridspec.Point{Config: p.Config, Workload: p.Workload, GPUPrice: p.GPUPrice}.Alone(p.Name),
	}}
	for _, w := range d.workers {
		files = append(files, d.serverFiles(w)...)
	}
	files = append(files, File{Name: GraphFile, Content: d.graph(), Note: "deploys it with Dynamo on Kubernetes: kubectl apply -f " + GraphFile})
	return append(files, File{Name: NotesFile, Content: d.notesFile(files), Note: "says what the servers have no setting for, and what to check"}), nil
}

// Write writes files into a folder, which it makes. The files of an earlier deployment stay unless they have the same name.
func Write(dir string, files []File) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make the folder %s: %w", dir, results.FileCause(err))
	}
	var errs []error
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		err := results.WriteFile(path, func(w io.Writer) error {
			_, err := w.Write(f.Content)
			return err
		})
		if err == nil && f.Executable {
			err = os.Chmod(path, 0o755)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deployment is a plan with what the files have in common.
type deployment struct {
	Plan
	backend backend
	workers []worker
	notes
}

// newDeployment looks up the server and the model of every pool.
func newDeployment(p Plan) (*deployment, error) {
	if p.Name == "" {
		p.Name = "servegrid"
	}
	d := &deployment{Plan: p}
	for i, w := range workersOf(p.Config) {
		b, ok := backends[w.Engine.Type]
		if !ok {
			return nil, fmt.Errorf("engine.type: %q has no server; use one of: %s", w.Engine.Type, strings.Join(engine.Types(), ", "))
		}
		if i > 0 && b.name != d.backend.name {
			return nil, fmt.Errorf("prefill.engine.type is %s and decode.engine.type %s; they cannot hand over KV caches", d.backend.name, b.name)
		}
		d.backend = b
		w.checkpoint = d.chooseCheckpoint(w)
		w.launch = b.launch(d, w)
		d.workers = append(d.workers, w)
	}
	d.simulated()
	return d, nil
}

// serverFiles returns the script that starts a worker without Dynamo, and the file of options that it needs.
func (d *deployment) serverFiles(w worker) []File {
	name := d.backend.name + w.suffix()
	what := fmt.Sprintf("starts one %s server (%s)", d.backend.title, w.describe())
	script := File{Name: name + ".sh", Note: what, Executable: true}
	var files []File
	options := ""
	if len(w.options) > 0 {
		options = name + ".yaml"
		files = append(files, File{Name: options, Note: "options of " + script.Name, Content: optionsYAML(d.backend.title, w.options)})
	}
	script.Content = d.script(w, what, options)
	return append([]File{script}, files...)
}
