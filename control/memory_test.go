package control_test

import (
	"testing"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.RunControl(t, func(*testing.T) func(*testing.T) storetest.ControlStore {
		m := control.NewMemory()
		return func(*testing.T) storetest.ControlStore { return m.Beside() }
	})
}
