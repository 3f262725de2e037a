package sweep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/servegrid/servegrid/simcore"
)

const (
	// childEnv names the output folder and makes the test binary the sweep that is killed.
	childEnv = "SERVEGRID_TEST_KILL_DIR"
	// killsEnv is the number of kills; the default keeps `go test` short.
	killsEnv = "SWEEP_TEST_KILLS"

	killPoints   = 300
	defaultKills = 10
)

// runChild sweeps and prints the ID of every point that is reported as finished.
func runChild(dir string) int {
	opt := testOptions(dir)
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		time.Sleep(time.Duration(1+job.Point.Config.Deployment.Workers%20) * time.Millisecond)
		return testSimulate(ctx, job)
	}
	opt.Observer = &recorder{onFinish: func(f Finished) {
		if f.Simulated {
			fmt.Println(f.Row.ID)
		}
	}}
	if _, err := Run(context.Background(), testPoints(killPoints), opt); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestKill kills sweeps at random moments. No point that was reported as finished may be lost or simulated again,
// and the results file must be whole at any time. When a sweep completes before enough kills, a new one begins.
func TestKill(t *testing.T) {
	kills := defaultKills
	if s := os.Getenv(killsEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s=%q: give a number", killsEnv, s)
		}
		kills = n
	}
	rng := rand.New(rand.NewPCG(1, 2))
	want := mustRun(t, testPoints(killPoints), testOptions(t.TempDir())).Rows
	for done := 0; done < kills; {
		dir := filepath.Join(t.TempDir(), "out")
		reported := map[string]bool{}
		for complete := false; !complete; {
			var killAfter time.Duration // 0: let it finish
			if done < kills {
				killAfter = 20*time.Millisecond + time.Duration(rng.Int64N(int64(400*time.Millisecond)))
			}
			complete = sweepInChild(t, dir, killAfter, reported)
			if !complete {
				done++
			}
			checkKept(t, dir, reported)
		}
		out := mustRun(t, testPoints(killPoints), testOptions(dir))
		if out.Counts.Simulated != 0 || len(reported) > killPoints {
			t.Errorf("%d points were not in the journal of a complete sweep", out.Counts.Simulated)
		}
		if diff := sameRows(want, out.Rows); diff != "" {
			t.Fatalf("rows differ from those of a straight run:\n%s", diff)
		}
	}
}

// sweepInChild runs a sweep in a process of its own and kills it after a while. It notes the IDs that the process
// reported and returns whether the sweep finished.
func sweepInChild(t *testing.T, dir string, killAfter time.Duration, reported map[string]bool) (complete bool) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), childEnv+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if killAfter > 0 {
		timer := time.AfterFunc(killAfter, func() { _ = child.Process.Kill() })
		defer timer.Stop()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		// The pipe may end in the middle of a line.
		if id := lines.Text(); len(id) == 64 {
			if reported[id] {
				t.Errorf("point %s was simulated again", id)
			}
			reported[id] = true
		}
	}
	err = child.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		t.Fatalf("the sweep failed: %v", err)
	}
	return err == nil
}

// checkKept checks what a killed sweep left.
func checkKept(t *testing.T, dir string, reported map[string]bool) {
	t.Helper()
	if _, err := os.Stat(journalPath(dir)); errors.Is(err, fs.ErrNotExist) && len(reported) == 0 {
		return // killed before it had begun
	}
	j := mustReadJournal(t, dir)
	for id := range reported {
		if _, ok := j.results[id]; !ok {
			t.Errorf("point %s was reported as finished and is lost", id)
		}
	}
	if j.damaged > 0 {
		t.Errorf("%d damaged lines", j.damaged)
	}
	if _, err := readTestFile(filepath.Join(dir, ResultsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("results file: %v", err)
	}
}
