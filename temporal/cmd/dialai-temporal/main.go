// Command dialai-temporal is dialai with sessions that workflows of Temporal drive.
package main

import (
	"context"
	"os"

	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/temporal"
)

func main() {
	os.Exit(cli.Main(context.Background(), strategies.Registry{}, os.Args[1:], temporal.Driver()))
}
