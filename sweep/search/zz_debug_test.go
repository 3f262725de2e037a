package search
import ("testing";"fmt";"os";"strings";"strconv";"sync")
func TestDebug(t *testing.T) {
	ns, _ := strconv.Atoi(os.Getenv("N"))
	for _, name := range strings.Split(os.Getenv("T"), ",") {
	tb := readTable(t, name)
	truth := tb.whole()
	pts := tb.points*15/100
	for _, st := range strings.Split(os.Getenv("S"), ",") {
	var wg sync.WaitGroup
	shares := make([]string, ns)
	sem := make(chan int, 2)
	for seed := range ns {
		wg.Add(1)
		go func() { defer wg.Done(); sem<-1
		found, at := tb.search(t, tb.strategy(st, pts, 1000*uint64(seed)), pts, truth)
		<-sem
		shares[seed] = fmt.Sprintf("%.4f/%.1f", found.share(truth), 100*float64(at)/float64(tb.points)) }()
	}
	wg.Wait()
	fmt.Println(name, st, strings.Join(shares, " "))
	}
	}
}
