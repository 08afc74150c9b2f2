package guard_test

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// A model that runs on is cut off while it writes, and what it has written is judged
// as a whole only where it came to its end.
func ExampleGuard_Stream() {
	config, problems := guard.ParseAs([]byte(`{"forbidden_patterns": ["as an ai language model"], "limits": {"output_max": 200}}`), guard.Compat)
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	g, err := guard.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, chunks := range [][]string{
		{"The tests pass", ", so I would ", "merge it."},
		{"I cannot say, As an AI lang", "uage model I do", " not know."},
	} {
		s := g.Stream("task-1")
		v := verdict.Verdict{}
		for _, chunk := range chunks {
			if v = s.Add(chunk); !v.Passed() {
				break // stop reading: the rest would cost and change nothing
			}
		}
		if v.Passed() {
			if v, _, err = s.Close(context.Background(), guard.CheckInput{TaskID: "task-1"}); err != nil {
				fmt.Println(err)
				return
			}
		}
		fmt.Println(v.Status, v.Codes())
	}
	// Output:
	// ok []
	// retry [forbidden_pattern]
}
