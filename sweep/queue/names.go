package queue

import (
	"strings"

	"github.com/servegrid/servegrid/simcore"
)

// DefaultNamespace is that of a queue whose URL names none.
const DefaultNamespace = "default"

// names are the subjects, streams and buckets of a namespace.
type names struct{ namespace string }

func (n names) prefix() string { return "servegrid-" + n.namespace }

// pointsStream holds the points that no worker has finished, partsStream the finished points that their sweep does not have
// yet.
func (n names) pointsStream() string { return n.prefix() + "-points" }
func (n names) partsStream() string  { return n.prefix() + "-parts" }

// filesBucket is the object store of the files of points, workersBucket says which workers are there, triesBucket how often
// points were begun in vain.
func (n names) filesBucket() string   { return n.prefix() + "-files" }
func (n names) workersBucket() string { return n.prefix() + "-workers" }
func (n names) triesBucket() string   { return n.prefix() + "-tries" }

// The streams that JetStream keeps the buckets in.
func (n names) filesStream() string   { return "OBJ_" + n.filesBucket() }
func (n names) workersStream() string { return "KV_" + n.workersBucket() }
func (n names) triesStream() string   { return "KV_" + n.triesBucket() }

func (n names) allPoints() string { return "servegrid." + n.namespace + ".points.>" }
func (n names) allParts() string  { return "servegrid." + n.namespace + ".parts.*" }

// pointsOf are the points for workers of a version of the simulator.
func (n names) pointsOf(version string) string {
	return "servegrid." + n.namespace + ".points." + versionToken(version) + ".*"
}

// points are those of a sweep, parts its finished ones.
func (n names) points(version, sweep string) string {
	return "servegrid." + n.namespace + ".points." + versionToken(version) + "." + sweep
}

func (n names) parts(sweep string) string { return "servegrid." + n.namespace + ".parts." + sweep }

// sweepOf is the sweep that a subject of points belongs to.
func (n names) sweepOf(pointsSubject string) string {
	return pointsSubject[strings.LastIndexByte(pointsSubject, '.')+1:]
}

// inbox is where replies to this namespace go. Users can be limited to their own.
func (n names) inbox() string { return "_INBOX_" + n.prefix() }

// workersConsumer is shared by all workers of a version of the simulator, partsConsumer belongs to a sweep.
func workersConsumer(version string) string { return "workers-v" + versionToken(version) }
func partsConsumer(sweep string) string     { return "sweep-" + sweep }

// versionToken is a version as a part of a subject or the name of a consumer, where dots are not allowed.
func versionToken(version string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '_'
	}, version)
}

// thisVersion is the version of the simulator in this program.
const thisVersion = simcore.SemanticVersion
