package main

import (
	"fmt"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/telemetry"
)

// cutView is the shards that lie in one folder.
type cutView struct {
	// whole is the view of that folder, nil when it has no results of its own.
	whole  *folderView
	shards []gridspec.Shard
	// specs holds the names of the shards by what stands for their spec, in the order of the shards. Those whose spec is not
	// known are left out.
	specs [][]string
}

// cuts finds the shards that are there, by the folder that they lie in.
func (v *statusView) cuts() (folders []string, cuts map[string]*cutView) {
	cuts = map[string]*cutView{}
	numbers := map[[2]string]int{} // of the specs of each folder
	for _, f := range v.Folders {
		s, shard := sweep.ShardOfFolder(files.Base(f.Dir))
		if !shard || f.State == stateMissing {
			continue
		}
		folder := files.Dir(f.Dir)
		cut := cuts[folder]
		if cut == nil {
			cut = &cutView{}
			folders, cuts[folder] = append(folders, folder), cut
		}
		cut.shards = append(cut.shards, s)
		if f.Status == nil || f.Status.Spec == "" {
			continue
		}
		key := [2]string{folder, f.Status.Spec}
		n, known := numbers[key]
		if !known {
			n = len(cut.specs)
			numbers[key], cut.specs = n, append(cut.specs, nil)
		}
		cut.specs[n] = append(cut.specs[n], sweep.ShardFolder(s))
	}
	for i := range v.Folders {
		if cut := cuts[v.Folders[i].Dir]; cut != nil {
			cut.whole = &v.Folders[i]
		}
	}
	return folders, cuts
}

// warn looks for shards whose points do not add up: they are of different specs, or two have the same points.
func (v *statusView) warn() {
	folders, cuts := v.cuts()
	for _, folder := range folders {
		cut := cuts[folder]
		if len(cut.specs) > 1 && (cut.whole == nil || cut.whole.State != string(telemetry.StateComplete)) {
			v.mixed = true
			v.Warnings = append(v.Warnings, fmt.Sprintf("the shards in %s are not of one spec, so they do not add up and merge asks for --spec: of one: %s; simulate all with the same spec and the same --set",
				folder, specsText(cut.specs)))
		}
		shards := cut.shards
		if cut.whole != nil {
			shards = append([]gridspec.Shard{{Index: 1, Count: 1}}, shards...)
		}
		if a, b, overlap := sweep.OverlappingShards(shards); overlap {
			v.overlap = true
			first := sweep.ShardFolder(a)
			if a.Count == 1 {
				first = "the folder itself"
			}
			v.Warnings = append(v.Warnings, fmt.Sprintf("in %s %s and %s have points in common, which merge counts once; they are not added up here", folder, first, sweep.ShardFolder(b)))
		}
	}
}

// specsText names the shards of each spec.
func specsText(specs [][]string) string {
	var parts []string
	for _, shards := range specs[:min(len(specs), maxNamed)] {
		parts = append(parts, someNames(shards))
	}
	return strings.Join(parts, "; of another: ")
}
