package everypage_test

import (
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

func TestMain(m *testing.M) { desktest.Main(m) }
