package gridspec
import ("testing";"fmt";"strings";"time")
func TestTmp2(t *testing.T){
 try := func(f Format, d string) {
   t0:=time.Now()
   s,err:=Load(Source{Data: []byte(d), Format: f, Path: "g."+string(f)})
   if len(d)>200 {d=d[:200]}
   fmt.Printf("--- %s\n=> ", d)
   if err!=nil {e:=err.Error(); if len(e)>600 {e=e[:600]}; fmt.Println(e)} else { fmt.Println("ok", s.Count()) }
   fmt.Println(time.Since(t0))
 }
 try(JSON, "{\"workload\": {\"preset\": {\"name\": \"chat\"}},\n \"engine\": {\"block_size\": \"6\", \"block_size\": 3},\n \"grid\": {\"load.rate\": [1, 1e400]}}")
 try(JSON, "{\"engine\": {\"block_size\": \"6\", \"block_size\": 3},\n \"grid\": {\"load.rate\": [1, 1]}}")
 try(JSON, "{\"engine\": ")
 try(JSON, "{\"engine\": {},}")
 try(JSON, "{} {}")
 try(JSON, "")
 try(TOML, "name = 3\n[engine]\nblock_size = 'x'\n[grid]\nengine.block_size = [1, 'a']\n'timing.tp' = [1,2]\n[[workload]]\npreset.name = 'chat'\n[[workload]]\npreset = {name = 'agentic', rat = 3}\n")
 try(TOML, "[engine]\nblock_size = 1\nblock_size = 2\n[load]\n[engine]\n")
 try(TOML, "[engine\n")
 try(TOML, "engine.block_size = 2020-01-01\n")
 try(TOML, "engine = 1\n[engine]\n")
 try(TOML, "a.b = 1\n[a]\n")
 try(YAML, strings.Repeat("[", 100000))
 try(YAML, strings.Repeat("- ", 100000))
 try(YAML, strings.Repeat("a: ", 100000))
 try(YAML, strings.Repeat("? ", 1000))
 bomb := "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
 for c:='b'; c<'k'; c++ { bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c,c,c-1,c-1,c-1,c-1,c-1,c-1,c-1,c-1,c-1,c-1)}
 try(YAML, bomb)
 try(YAML, "a: &a [*a]\n")
 try(YAML, "name: x\n---\nname: y\n")
 try(YAML, "- 1\n")
 try(YAML, "")
 try(YAML, "name: a\n bad: [\n")
 try(YAML, "name: a\nname: b\nengine:\n  block_size: 0644\n")
 try(YAML, "name: !!str 3\n")
 try(YAML, "base: &b {block_size: 32}\nengine:\n  <<: *b\n")
 try(YAML, "workload: {preset: {name: chat}}\nengine: &e\n  block_size: 32\ncases:\n  x: {engine: {<<: *e, max_num_seqs: 3}}\n")
 try(YAML, "\xff\xfe")
 try(YAML, "a\x00")
 big := "workload: {preset: {name: chat}}\ninclude:\n"+strings.Repeat("- {engine.block_size: 32}\n", 20000)
 try(YAML, big)
 deep := ""; for i:=0;i<1000;i++ { deep += strings.Repeat(" ", i)+"a:\n" }
 try(YAML, deep)
 many := "exclude: ["+strings.Repeat("a, ", 500000)+"]"
 try(YAML, many)
}
