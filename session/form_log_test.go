package session_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/dialai/dialai/session"
)

// TestSkimKeepsWhatDecided: who skims a verdict learns all of it, but of its judgement only
// what that was held to.
func TestSkimKeepsWhatDecided(t *testing.T) {
	e := session.Raw{Kind: session.KindJudged, Data: json.RawMessage(`{"index":1,"arbiterId":"a","strategy":"bayes","consensusReached":true,"winner":0,
		"rule":1,"subject":"b","weight":0.5,"hasMargin":true,"margin":0.25,"threshold":0.5,"order":[2,1],"weights":[1,0.5],
		"quorum":{"counted":2,"answered":2,"needed":1},"evidence":{"place":7,"policyDigest":"d","versions":["","x"],"stop":"decided"},
		"explanation":{"strategy":"bayes","P":[1],"options":["go"],"pick":"go","risk":{"promise":{"maxError":0.1,"confidence":0.9},"state":"met"},"threshold":0.75}}`)}
	var read, skimmed session.Judged
	if err := e.Read(&read, nil); err != nil {
		t.Fatal(err)
	}
	if err := e.Skim(&skimmed, nil); err != nil {
		t.Fatal(err)
	}
	said := read.Decision.Judgement
	if said.Pick != "go" || said.Risk == nil || said.Threshold == nil || read.Evidence.Place != 7 {
		t.Fatalf("read as %+v", read)
	}
	if held := skimmed.Decision.Judgement; !reflect.DeepEqual(held.Risk, said.Risk) || !reflect.DeepEqual(held.Threshold, said.Threshold) || held.Pick != "" {
		t.Errorf("skimmed as %+v, read as %+v", held, said)
	}
	read.Decision.Judgement, skimmed.Decision.Judgement = nil, nil
	if !reflect.DeepEqual(read, skimmed) {
		t.Errorf("skimmed as\n%+v, read as\n%+v", skimmed, read)
	}
}
