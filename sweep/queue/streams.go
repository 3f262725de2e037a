package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// Limits are those of the streams that a coordinator or worker makes. Streams that are there already keep theirs.
type Limits struct {
	// Replicas is the number of servers that hold each stream; 0 means 1.
	Replicas int
	// MaxPoints bounds the points that wait or run; 0 means 1,000,000. More wait at their coordinators.
	MaxPoints int64
	// MaxPointsBytes, MaxPartsBytes and MaxFilesBytes bound the streams of points, of finished points and of files, in bytes;
	// 0 means 1 GiB, 512 MiB and no limit: a server reserves what streams may hold. Workers wait while there is no room for what they finished.
	MaxPointsBytes, MaxPartsBytes, MaxFilesBytes int64
	// AckWait is how long a worker may be silent about a point before another one gets it; 0 means 30 seconds.
	AckWait time.Duration
}

// The defaults of Limits, and what cannot be chosen.
const (
	defaultMaxPoints      = 1_000_000
	defaultMaxPointsBytes = 1 << 30
	defaultMaxPartsBytes  = 512 << 20
	defaultAckWait        = 30 * time.Second
	// messages are kept this long: nobody comes back for them later.
	streamAge = 14 * 24 * time.Hour
	// duplicateWindow is how long a message that is sent again is recognised.
	duplicateWindow = 10 * time.Minute
	// maxAckPending bounds the points that workers have at a time.
	maxAckPending = 200_000
	// presenceTTL is how long a worker counts as there after it said so.
	presenceTTL = 30 * time.Second
)

func (l Limits) withDefaults() Limits {
	if l.Replicas == 0 {
		l.Replicas = 1
	}
	if l.MaxPoints == 0 {
		l.MaxPoints = defaultMaxPoints
	}
	if l.MaxPointsBytes == 0 {
		l.MaxPointsBytes = defaultMaxPointsBytes
	}
	if l.MaxPartsBytes == 0 {
		l.MaxPartsBytes = defaultMaxPartsBytes
	}
	if l.MaxFilesBytes == 0 {
		l.MaxFilesBytes = -1
	}
	if l.AckWait == 0 {
		l.AckWait = defaultAckWait
	}
	return l
}

// Prepare makes what the namespace lacks: its streams, buckets and the consumer of the workers of this program's version. What
// is there is taken as it is when it will do, and an error says why not otherwise. Any number may do this at the same time. It
// tries as long as the connection may take to come about, since a server answers before its streams can be used.
func (c *Connection) Prepare(ctx context.Context, l Limits) error {
	l = l.withDefaults()
	c.mu.Lock()
	c.limits = l
	c.mu.Unlock()
	return c.insist(ctx, func(ctx context.Context) error { return c.prepare(ctx, l) })
}

func (c *Connection) prepare(ctx context.Context, l Limits) error {
	for _, want := range []jetstream.StreamConfig{c.pointsConfig(l), c.partsConfig(l)} {
		if err := c.prepareStream(ctx, want); err != nil {
			return err
		}
	}
	if err := c.prepareBuckets(ctx, l); err != nil {
		return err
	}
	_, err := c.workersConsumer(ctx, l)
	return err
}

// removalTime is how long a server may be at removing a stream that it does not name any more. One of the same name that is made
// meanwhile loses its files to the removal, and never answers who publishes to it.
const removalTime = time.Second

// restore makes again what the server lost of the namespace, or what somebody removed a moment ago.
func (c *Connection) restore(ctx context.Context) error {
	if pause(ctx, removalTime); ctx.Err() != nil {
		return ctx.Err()
	}
	c.mu.Lock()
	l := c.limits
	c.mu.Unlock()
	return c.prepare(ctx, l)
}

// restoring does something and, when its stream is not there, restores that and does it once more.
func (c *Connection) restoring(ctx context.Context, do func() error) error {
	err := do()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err = c.restore(ctx); err == nil {
			err = do()
		}
	}
	return err
}

func (c *Connection) pointsConfig(l Limits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: c.pointsStream(), Description: "Points that servegrid workers simulate", Subjects: []string{c.allPoints()},
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxMsgs: l.MaxPoints, MaxBytes: l.MaxPointsBytes, MaxMsgSize: wire.MaxPointMessage, MaxAge: streamAge,
		Replicas: l.Replicas, Duplicates: duplicateWindow,
	}
}

func (c *Connection) partsConfig(l Limits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: c.partsStream(), Description: "Finished points on the way to their servegrid sweeps", Subjects: []string{c.allParts()},
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxBytes: l.MaxPartsBytes, MaxMsgSize: wire.MaxPartMessage, MaxAge: streamAge,
		Replicas: l.Replicas, Duplicates: duplicateWindow,
	}
}

// prepareStream adopts a stream, or makes it.
func (c *Connection) prepareStream(ctx context.Context, want jetstream.StreamConfig) error {
	for {
		var stream jetstream.Stream
		err := c.ask(ctx, func(ctx context.Context) (err error) {
			stream, err = c.js.Stream(ctx, want.Name)
			return err
		})
		if err == nil {
			return fits(stream.CachedInfo().Config, want)
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			return serverError("stream "+want.Name, err)
		}
		err = c.ask(ctx, func(ctx context.Context) error {
			_, err := c.js.CreateStream(ctx, want)
			return err
		})
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // else somebody was faster
			return serverError("making stream "+want.Name, err)
		}
	}
}

// fits says why a stream that is there will not do.
func fits(have, want jetstream.StreamConfig) error {
	var problems []string
	if !slices.Equal(have.Subjects, want.Subjects) {
		problems = append(problems, fmt.Sprintf("it has the subjects %q and not %q", have.Subjects, want.Subjects))
	}
	if have.Retention != want.Retention {
		problems = append(problems, "it is no work queue")
	}
	if have.Discard != want.Discard {
		problems = append(problems, "it drops old messages when it is full")
	}
	if have.MaxMsgSize > 0 && have.MaxMsgSize < want.MaxMsgSize {
		problems = append(problems, fmt.Sprintf("its messages may have %d bytes only; %d are needed", have.MaxMsgSize, want.MaxMsgSize))
	}
	if have.NoAck || have.Sealed || have.DenyPurge || have.DenyDelete {
		problems = append(problems, "it is sealed, denies removal, or does not acknowledge")
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("queue: stream %s is there but will not do: %s; remove it (nats stream rm %s) or use another namespace",
		want.Name, strings.Join(problems, "; "), want.Name)
}

// prepareBuckets adopts or makes the object store and the buckets.
func (c *Connection) prepareBuckets(ctx context.Context, l Limits) error {
	files := jetstream.ObjectStoreConfig{
		Bucket: c.filesBucket(), Description: "Files of servegrid's points, named by their SHA-256",
		MaxBytes: l.MaxFilesBytes, Storage: jetstream.FileStorage, Replicas: l.Replicas,
	}
	buckets := []jetstream.KeyValueConfig{
		{
			Bucket: c.workersBucket(), Description: "The servegrid workers that are there",
			TTL: presenceTTL, History: 1, MaxBytes: 16 << 20, Storage: jetstream.FileStorage, Replicas: l.Replicas,
		}, {
			Bucket: c.triesBucket(), Description: "How often servegrid's points were begun in vain, and which sweeps have ended",
			TTL: streamAge, History: 1, MaxBytes: 64 << 20, Storage: jetstream.FileStorage, Replicas: l.Replicas,
		},
	}
	err := c.prepareBucket(ctx, bucketKind{"the object store", c.filesStream(), "$O." + files.Bucket + ".", 0}, func(ctx context.Context) error {
		_, err := c.js.CreateObjectStore(ctx, files)
		return err
	})
	for i, stream := range []string{c.workersStream(), c.triesStream()} {
		kind := bucketKind{"the bucket", stream, "$KV." + buckets[i].Bucket + ".", buckets[i].TTL}
		err = errors.Join(err, c.prepareBucket(ctx, kind, func(ctx context.Context) error {
			_, err := c.js.CreateKeyValue(ctx, buckets[i])
			return err
		}))
	}
	return err
}

// bucketKind is what a bucket must be, besides what people may change: the stream that it is kept in, how its subjects begin, and
// how long it keeps what is in it; 0 means until it is removed.
type bucketKind struct {
	what, stream, prefix string
	age                  time.Duration
}

// prepareBucket adopts a bucket, or makes it.
func (c *Connection) prepareBucket(ctx context.Context, want bucketKind, create func(context.Context) error) error {
	for {
		var stream jetstream.Stream
		err := c.ask(ctx, func(ctx context.Context) (err error) {
			stream, err = c.js.Stream(ctx, want.stream)
			return err
		})
		switch {
		case err == nil:
			return want.fits(stream.CachedInfo().Config)
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return serverError(want.what+" in "+want.stream, err)
		}
		if err = c.ask(ctx, create); err == nil {
			return nil
		}
		if !errors.Is(err, jetstream.ErrBucketExists) && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // else somebody was faster
			return serverError("making "+want.what+" in "+want.stream, err)
		}
	}
}

// fits says why a bucket that is there will not do.
func (k bucketKind) fits(have jetstream.StreamConfig) error {
	var problems []string
	if slices.ContainsFunc(have.Subjects, func(s string) bool { return !strings.HasPrefix(s, k.prefix) }) || len(have.Subjects) == 0 {
		problems = append(problems, fmt.Sprintf("it has the subjects %q and not those below %q", have.Subjects, k.prefix))
	}
	if have.MaxAge != k.age {
		problems = append(problems, fmt.Sprintf("it keeps what is in it for %s and not for %s", forHowLong(have.MaxAge), forHowLong(k.age)))
	}
	if have.Storage != jetstream.FileStorage {
		problems = append(problems, "it is in the memory of the server, which forgets it with each restart")
	}
	if have.Sealed || have.DenyPurge {
		problems = append(problems, "it is sealed, or denies removal")
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("queue: %s in the stream %s is there but will not do: %s; remove it (nats stream rm %s) or use another namespace",
		k.what, k.stream, strings.Join(problems, "; "), k.stream)
}

func forHowLong(age time.Duration) string {
	if age == 0 {
		return "ever"
	}
	return age.String()
}

// workersConsumer adopts or makes the consumer that all workers of this version share.
func (c *Connection) workersConsumer(ctx context.Context, l Limits) (jetstream.Consumer, error) {
	name := workersConsumer(thisVersion)
	var consumer jetstream.Consumer
	err := c.ask(ctx, func(ctx context.Context) (err error) {
		consumer, err = c.js.Consumer(ctx, c.pointsStream(), name)
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		err = c.ask(ctx, func(ctx context.Context) (err error) {
			consumer, err = c.js.CreateOrUpdateConsumer(ctx, c.pointsStream(), jetstream.ConsumerConfig{
				Durable: name, Description: "servegrid workers of simulator version " + thisVersion,
				FilterSubject: c.pointsOf(thisVersion), AckPolicy: jetstream.AckExplicitPolicy, AckWait: l.AckWait,
				MaxDeliver: -1, MaxAckPending: maxAckPending, MaxWaiting: maxWaitingWorkers,
			})
			return err
		})
	}
	if err != nil {
		return nil, serverError("the workers' consumer "+name, err)
	}
	if cfg := consumer.CachedInfo().Config; cfg.AckPolicy != jetstream.AckExplicitPolicy || cfg.MaxDeliver > 0 || cfg.FilterSubject != c.pointsOf(thisVersion) {
		return nil, fmt.Errorf("queue: consumer %s of %s is there but will not do: it must ask for explicit acknowledgements, deliver without limit and filter %s; remove it (nats consumer rm %s %s)",
			name, c.pointsStream(), c.pointsOf(thisVersion), c.pointsStream(), name)
	}
	return consumer, nil
}

// maxWaitingWorkers bounds the workers that wait for points at a time.
const maxWaitingWorkers = 20_000

// Seen asks the server how full the namespace is and who is there.
func (c *Connection) Seen(ctx context.Context) (State, error) {
	s := State{Workers: map[string]int{}}
	kinds := []struct{ kind, stream string }{
		{"points", c.pointsStream()}, {"parts", c.partsStream()}, {"files", c.filesStream()}, {"workers", c.workersStream()},
	}
	for _, k := range kinds {
		info, err := c.streamInfo(ctx, k.stream, "")
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return State{}, serverError("stream "+k.stream, err)
		}
		s.Streams = append(s.Streams, StreamState{
			Kind: k.kind, Messages: int64(info.State.Msgs), Bytes: int64(info.State.Bytes),
			MaxMessages: info.Config.MaxMsgs, MaxBytes: info.Config.MaxBytes,
		})
	}
	var err error
	if s.Workers, err = c.workersThere(ctx); err != nil {
		return State{}, err
	}
	consumer, err := c.workersState(ctx)
	if err != nil {
		return State{}, err
	}
	if consumer != nil {
		s.Consumers = append(s.Consumers, *consumer)
	}
	return s, nil
}

// workersState is what waits for the workers of this version; nil when their consumer is not there.
func (c *Connection) workersState(ctx context.Context) (*ConsumerState, error) {
	var consumer jetstream.Consumer
	err := c.ask(ctx, func(ctx context.Context) (err error) {
		consumer, err = c.js.Consumer(ctx, c.pointsStream(), workersConsumer(thisVersion))
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, serverError("the workers' consumer", err)
	}
	info := consumer.CachedInfo()
	return &ConsumerState{
		Version: thisVersion, Waiting: int64(info.NumPending), InProgress: int64(info.NumAckPending), Redelivered: int64(info.NumRedelivered),
	}, nil
}

// streamInfo asks for a stream, and for how many messages it has of a subject when one is given.
func (c *Connection) streamInfo(ctx context.Context, name, subject string) (info *jetstream.StreamInfo, err error) {
	err = c.ask(ctx, func(ctx context.Context) error {
		stream, err := c.js.Stream(ctx, name)
		if err != nil {
			return err
		}
		info = stream.CachedInfo()
		if subject != "" {
			info, err = stream.Info(ctx, jetstream.WithSubjectFilter(subject))
		}
		return err
	})
	return info, err
}

// waiting counts the messages of a stream by subject.
func (c *Connection) waiting(ctx context.Context, stream, subject string) (n uint64, err error) {
	info, err := c.streamInfo(ctx, stream, subject)
	if err != nil {
		return 0, serverError("stream "+stream, err)
	}
	for _, of := range info.State.Subjects {
		n += of
	}
	return n, nil
}
