// Command dialai runs machine files. A program of your own with Go strategies is
// this one with a Registry that is not empty.
package main

import (
	"context"
	"os"

	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/strategies"
)

func main() {
	os.Exit(cli.Main(context.Background(), strategies.Registry{}, os.Args[1:]))
}
