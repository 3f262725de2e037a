package sweep

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/workload"
)

// requests is a workload of n requests.
func requests(n int) *workload.Workload {
	return &workload.Workload{Input: make([]int32, n), Output: make([]int32, n)}
}

func give(w *workload.Workload) func(context.Context) (*workload.Workload, error) {
	return func(context.Context) (*workload.Workload, error) { return w, nil }
}

func TestWorkloadCacheLoadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewWorkloadCache(1 << 30)
		loads := atomic.Int32{}
		load := func(context.Context) (*workload.Workload, error) {
			loads.Add(1)
			time.Sleep(time.Second)
			return requests(3), nil
		}
		var points sync.WaitGroup
		for range 16 {
			points.Go(func() {
				w, release, err := c.Use(t.Context(), WorkloadKey{spec: "a"}, load)
				if err != nil || w.Requests() != 3 {
					t.Errorf("use = %v, %v", w, err)
					return
				}
				release()
				release() // once too often, which counts once
			})
		}
		points.Wait()
		if loads.Load() != 1 || len(c.unused) != 1 || c.loaded[WorkloadKey{spec: "a"}].users != 0 {
			t.Errorf("%d loads, %d unused, want 1 and 1", loads.Load(), len(c.unused))
		}
	})
}

// A panic of a loader is the points' error, and nobody waits for ever.
func TestWorkloadCacheLoaderPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewWorkloadCache(1 << 30)
		var points sync.WaitGroup
		for range 4 {
			points.Go(func() {
				_, _, err := c.Use(t.Context(), WorkloadKey{spec: "a"}, func(context.Context) (*workload.Workload, error) {
					time.Sleep(time.Second)
					panic("a defect")
				})
				if err == nil || !strings.Contains(err.Error(), "a defect") {
					t.Errorf("error %v", err)
				}
			})
		}
		points.Wait()
		if _, _, err := c.Use(t.Context(), WorkloadKey{spec: "a"}, give(nil)); err == nil {
			t.Error("a workload that is none is accepted")
		}
		if w, _, err := c.Use(t.Context(), WorkloadKey{spec: "a"}, give(requests(1))); err != nil || w.Requests() != 1 {
			t.Errorf("the next point gets %v, %v", w, err)
		}
	})
}

// The point that began to load may be given up without harm to those that wait with it.
func TestWorkloadCacheFirstPointCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewWorkloadCache(1 << 30)
		load := func(ctx context.Context) (*workload.Workload, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Minute):
				return requests(1), nil
			}
		}
		first, cancel := context.WithCancel(t.Context())
		var points sync.WaitGroup
		points.Go(func() {
			if _, _, err := c.Use(first, WorkloadKey{spec: "a"}, load); !errors.Is(err, context.Canceled) {
				t.Errorf("the first point: %v", err)
			}
		})
		synctest.Wait()
		points.Go(func() {
			if _, _, err := c.Use(t.Context(), WorkloadKey{spec: "a"}, load); err != nil {
				t.Errorf("the second point: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		points.Wait()
	})
}

// Once nobody waits, the loading ends and the next point begins anew.
func TestWorkloadCacheNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewWorkloadCache(1 << 30)
		ended := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := c.Use(ctx, WorkloadKey{spec: "a"}, func(ctx context.Context) (*workload.Workload, error) {
			<-ctx.Done()
			close(ended)
			time.Sleep(time.Second) // it ends late
			return requests(7), nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		<-ended
		w, release, err := c.Use(t.Context(), WorkloadKey{spec: "a"}, give(requests(1)))
		if err != nil || w.Requests() != 1 {
			t.Fatalf("the next point gets %v, %v", w, err)
		}
		time.Sleep(time.Minute)
		if c.bytes != sizeOf(w).bytes(1) {
			t.Errorf("%d bytes are counted, want %d", c.bytes, sizeOf(w).bytes(1))
		}
		release()
	})
}

// While those in use take all the room, the next one waits; unused ones make room.
func TestWorkloadCacheWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewWorkloadCache(sizeOf(requests(1000)).bytes(1))
		_, release, err := c.Use(t.Context(), WorkloadKey{spec: "large"}, give(requests(1000)))
		if err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.Use(soon, WorkloadKey{spec: "next"}, give(requests(1))); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a workload is loaded without room: %v", err)
		}
		time.AfterFunc(time.Second, release)
		_, releaseNext, err := c.Use(t.Context(), WorkloadKey{spec: "next"}, give(requests(1)))
		if err != nil {
			t.Fatal(err)
		}
		if c.loaded[WorkloadKey{spec: "large"}] != nil {
			t.Error("the unused workload is still there")
		}
		releaseNext()
		// One that is larger than all the room is loaded alone.
		if _, release, err = c.Use(t.Context(), WorkloadKey{spec: "huge"}, give(requests(5000))); err != nil {
			t.Fatal(err)
		}
		release()
		if c.bytes != 0 {
			t.Errorf("%d bytes are kept of a workload that there is no room for", c.bytes)
		}
	})
}

// Any points with any workloads, some cancelled and some that fail: each gets its own workload or its own error, and what is
// counted at the end is what is there, within the limit.
func TestWorkloadCacheProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		type point struct {
			Workload, Start, Wait, Use int
			Fails                      bool
		}
		points := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) point {
			return point{
				rapid.IntRange(1, 5).Draw(r, "workload"), rapid.IntRange(0, 20).Draw(r, "start"),
				rapid.IntRange(1, 30).Draw(r, "wait"), rapid.IntRange(0, 10).Draw(r, "use"), rapid.IntRange(0, 4).Draw(r, "fails") == 0,
			}
		}), 1, 30).Draw(r, "points")
		limit := sizeOf(requests(100 * rapid.IntRange(1, 8).Draw(r, "limit"))).bytes(1)
		synctest.Test(t, func(t *testing.T) {
			c := NewWorkloadCache(limit)
			var all sync.WaitGroup
			for _, p := range points {
				all.Go(func() {
					time.Sleep(time.Duration(p.Start) * time.Second)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(p.Wait)*time.Second)
					defer cancel()
					w, release, err := c.Use(ctx, WorkloadKey{blockSize: p.Workload}, func(ctx context.Context) (*workload.Workload, error) {
						select {
						case <-time.After(time.Duration(rand.IntN(5000)) * time.Millisecond):
						case <-ctx.Done():
							return nil, ctx.Err()
						}
						if p.Fails {
							return nil, errors.New("it fails")
						}
						return requests(100 * p.Workload), nil
					})
					switch {
					case err == nil:
						if w.Requests() != 100*p.Workload {
							t.Errorf("a workload of %d requests, want %d", w.Requests(), 100*p.Workload)
						}
						time.Sleep(time.Duration(p.Use) * time.Second)
						release()
					case errors.Is(err, context.Canceled):
						t.Error("a point got the end of another one")
					}
				})
			}
			all.Wait()
			synctest.Wait()
			total := int64(0)
			for key, l := range c.loaded {
				if l.users != 0 {
					t.Errorf("%v has %d users", key, l.users)
				}
				total += l.bytes
			}
			if total != c.bytes || len(c.unused) != len(c.loaded) || c.bytes > limit {
				t.Errorf("%d bytes counted of %d, limit %d; %d unused of %d", c.bytes, total, limit, len(c.unused), len(c.loaded))
			}
		})
	})
}
