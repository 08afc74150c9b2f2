package guard

import (
	"fmt"
	"runtime"
	"testing"
)

// TestMemory measures the heap that a task takes once its history is full, with
// all that a Guard keeps for it, and holds it to what is promised.
func TestMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes objects larger")
	}
	steps := benchSteps(60, 2048)
	for _, c := range []struct {
		name, more string
		most       uint64
	}{{"with n-grams", `,"mode":"overlap"`, 32 << 10}, {"mode off", `,"mode":"off"`, 4 << 10}} {
		g := benchGuard(t, Strict, twoPatterns, c.more)
		if size := heapOf(t, g, steps); size > c.most {
			t.Errorf("%s: a task takes %d bytes, at most %d are promised", c.name, size, c.most)
		} else {
			t.Logf("%s: %d bytes", c.name, size)
		}
	}
}

// heapOf returns the heap per task, over many tasks that each take all steps.
func heapOf(t *testing.T, g *Guard, steps []CheckInput) uint64 {
	const tasks = 200
	run := func(name string) {
		for _, in := range steps {
			in.TaskID = name
			if v, _, err := g.Check(in); err != nil || !v.Passed() {
				t.Fatal(v.Codes(), err)
			}
		}
	}
	run("warm") // the scratch memory is no part of a task
	before := heap()
	for i := range tasks {
		run(fmt.Sprint("task", i))
	}
	after := heap()
	runtime.KeepAlive(g)
	return (after - before) / tasks
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one only frees
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
