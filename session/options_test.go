package session_test

import (
	"reflect"
	"testing"

	"github.com/dialai/dialai/session"
)

// TestEachOptionIsKept: a session whose options are not set has none stored, so each option
// by itself has to count as one.
func TestEachOptionIsKept(t *testing.T) {
	if (session.Options{}).IsSet() {
		t.Error("no option counts as one")
	}
	fields := reflect.TypeFor[session.Options]()
	for i := range fields.NumField() {
		if !fields.Field(i).IsExported() {
			continue // is kept beside another
		}
		var o session.Options
		switch f := reflect.ValueOf(&o).Elem().Field(i); f.Kind() {
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Uint64:
			f.SetUint(1)
		default:
			t.Fatalf("%s is a %s: give it a value here", fields.Field(i).Name, f.Kind())
		}
		if !o.IsSet() {
			t.Errorf("%s alone is lost", fields.Field(i).Name)
		}
	}
}
