package specialist

import (
	"encoding/json"
	"time"

	"github.com/dialai/dialai/internal/jsontext"
)

// A Time is a moment in milliseconds since 1970, UTC. The zero value is 1970
// itself and stands for "never".
type Time int64

// TimeOf cuts t to milliseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Time returns t as a time.Time in UTC.
func (t Time) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// String returns t as RFC 3339 with milliseconds, UTC.
func (t Time) String() string { return t.Time().Format(jsontext.TimeLayout) }

// Append appends what String returns.
func (t Time) Append(dst []byte) []byte { return t.Time().AppendFormat(dst, jsontext.TimeLayout) }

// MarshalJSON writes the text form.
func (t Time) MarshalJSON() ([]byte, error) {
	return append(t.Append([]byte{'"'}), '"'), nil
}

// UnmarshalJSON reads RFC 3339; null changes nothing.
func (t *Time) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if v, ok := moment(data); ok {
		*t = v
		return nil
	}
	var v time.Time
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*t = TimeOf(v)
	return nil
}

// moment reads a time in the one form that is stored, "2006-01-02T15:04:05.000Z".
func moment(raw []byte) (Time, bool) {
	const form = `"0000-00-00T00:00:00.000Z"`
	if len(raw) != len(form) {
		return 0, false
	}
	var n [7]int
	field := 0
	for i := 1; i < len(form)-1; i++ {
		switch b := raw[i]; {
		case form[i] != '0' && b == form[i]:
			field++
		case form[i] == '0' && b >= '0' && b <= '9':
			n[field] = n[field]*10 + int(b-'0')
		default:
			return 0, false
		}
	}
	at := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1e6, time.UTC)
	return TimeOf(at), at.Month() == time.Month(n[1]) && at.Day() == n[2] && at.Hour() == n[3] && at.Minute() == n[4] && at.Second() == n[5]
}
