package gridspec
import ("testing";"fmt";"os")
func TestTmp(t *testing.T){
 s,err:=Load(Source{Path:os.Getenv("SPEC"), Env: os.Environ(), Set: []string{"execution.replicates=2"}})
 if err!=nil { fmt.Println("ERR\n"+err.Error()); return }
 r,_:=s.Resolved(); fmt.Println(string(r))
 ps,err:=s.Expand(ExpandOptions{}); if err!=nil {fmt.Println("EERR\n"+err.Error())}
 fmt.Println(s.Count(), len(ps)); if len(ps)>0 {fmt.Printf("%+v\n", ps[len(ps)-1]); fmt.Println(ps[0].ContentID("abc"))}
}
