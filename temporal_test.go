package dialai_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTemporalIsAModuleOfItsOwn: nobody who uses dialai depends on Temporal, which only the
// module in the folder temporal does.
func TestTemporalIsAModuleOfItsOwn(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-test", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := string(out)
	if !strings.Contains(packages, module+"/cli\n") {
		t.Fatal("the packages are not listed")
	}
	for _, never := range []string{"go.temporal.io", module + "/temporal"} {
		if strings.Contains(packages, never) {
			t.Errorf("a package depends on %s", never)
		}
	}
	direct, err := exec.Command("go", "list", "-m", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(direct), "go.temporal.io") {
		t.Error("the module requires Temporal")
	}
}
