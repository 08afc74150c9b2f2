package dialai_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Whatever other programs can import is a promise. TestNames counts it, and asks of
// each name what it is for: somebody outside its package uses it, or somebody needs it
// to say what another exported name takes or gives, or it is listed in offered.

// maxNames is how many names our packages may export in all: 750, and those in which a
// machine says what its sessions are about and a session what came of it (input, subject,
// conditions, assignments, by when a state is to be left), those of a driver, and those in
// which a server remembers (keys, receipts, an audit log, published machines, claims) and what
// programs say to it and are told, and those of a client of it, which sees of our packages
// nothing but api, and those by which its operations are offered as tools of MCP, and those of webhooks: who is
// told what, what is kept of it, and the messages; and those by which reviews and orders go over HTTP as they do here; and
// what tokens of an issuer are good for; those by which a server is watched: parts of steps, counts, checks of readiness;
// and what streams of events resume from and are told, and callbacks are about; and what jobs are asked for and come to;
// and tenants, and where tokens may go; and the log of what agents do about sessions; and those by
// which people sign in with a browser; and by what an agent's prompts are judged and answered; and
// those by which several processes share the sessions of a store, and a server what it remembers, and by which stores
// are copied; and those by which payloads are erased, and sessions archived, in any store, and the suites of both;
// and by which a store counts quotas, has a clock, and tells that a copy has taken its place;
// and what a check of a store says of quotas, and that a newer version has written to a session;
// and the inbox with the sessions that are quarantined; and those by which a session is driven from outside,
// by whoever sends the asks that it records, and by which a program with another driver has its commands among ours;
// and that by which an archive is erased in, and those by which what a server remembers is copied;
// and a suite of stores whose processes are killed;
// and those by which a session says who carries it on;
// and those by which sessions are listed by since when they wait, and many are loaded at once;
// and that by which an event says what it teaches, to be read ahead;
// and that by which a database says of a file that it is no archive before anything is moved.
const maxNames = 1422

// offered are names for programs that we do not use ourselves.
var offered = map[string]string{
	"guard.Defaults":       "checks a program's own guard: see its examples",
	"guard.Func":           "checks a program's own guard: see its examples",
	"guard.Load":           "checks a program's own guard: see its examples",
	"guard.WithCheckers":   "checks a program's own guard: see its examples",
	"guard.WithClassifier": "checks a program's own guard: see its examples",
	"guard.WithObserver":   "checks a program's own guard: see its examples",
	"verdict.Reject":       "checks a program's own guard: see its examples",

	"guard.CallEstimate":  "the ledger of a program with agents of its own: see its examples",
	"guard.CallUsage":     "the ledger of a program with agents of its own: see its examples",
	"guard.LedgerHandle":  "the ledger of a program with agents of its own: see its examples",
	"guard.LedgerOpening": "the ledger of a program with agents of its own: see its examples",
	"guard.LedgerScope":   "the ledger of a program with agents of its own: see its examples",
	"guard.NewLedger":     "the ledger of a program with agents of its own: see its examples",
	"guard.Quota":         "the ledger of a program with agents of its own: see its examples",

	"runner.PartDecide": "a part of a step among others, for who traces them",

	"agent/agenttest.All":         "tests of programs that drive coding agents",
	"agent/agenttest.Allow":       "tests of programs that drive coding agents",
	"agent/agenttest.ClaudeEnv":   "tests of programs that drive coding agents",
	"agent/agenttest.CodexEnv":    "tests of programs that drive coding agents",
	"agent/agenttest.Documented":  "tests of programs that drive coding agents",
	"agent/agenttest.ID":          "tests of programs that drive coding agents",
	"agent/agenttest.OpenCodeEnv": "tests of programs that drive coding agents",
	"agent/agenttest.Open":        "tests of programs that drive coding agents",
	"agent/agenttest.Program":     "tests of programs that drive coding agents",
	"agent/agenttest.Prompt":      "tests of programs that drive coding agents",
	"agent/agenttest.Start":       "tests of programs that drive coding agents",
	"agent/agenttest.Uses":        "tests of programs that drive coding agents",

	"client.Now": "calls a server: see its example",

	"session.KindReminded":  "a kind of event among others, for who reads a log",
	"session.CodeApprovals": "a code among others, for who reads why a session waits",

	"guard.DefaultHistoryLimit":     "a limit that docs and schemas state",
	"guard.DefaultMaxStateVisits":   "a limit that docs and schemas state",
	"machine.DefaultWebhookTimeout": "a limit that docs and schemas state",
	"specialist.MaxExemplarContext": "a limit that docs and schemas state",
	"webhook.MaxAnswer":             "a limit that docs and schemas state",

	"machine.NewSchema":            "builds a machine without a file",
	"machine.TransitionDefinition": "builds a machine without a file",

	"desk/desktest.Alone":    "the tests of the desk",
	"desk/desktest.Eval":     "the tests of the desk",
	"desk/desktest.Quoted":   "the tests of the desk",
	"desk/desktest.Working":  "the tests of the desk",
	"desk/desktest.Kinds":    "the tests of the desk",
	"desk/desktest.Main":     "the tests of the desk",
	"desk/desktest.Open":     "the tests of the desk",
	"desk/desktest.OpenIn":   "the tests of the desk",
	"desk/desktest.Program":  "the tests of the desk, and those of whole programs",
	"desk/desktest.Proposed": "the tests of the desk",
	"desk/desktest.Reason":   "the tests of the desk",
	"desk/desktest.Serve":    "the tests of the desk",

	"llm/llmtest.Script": "tests of programs that ask models",
	"llm/llmtest.Start":  "tests of programs that ask models",

	"store/storetest.ArchiveFile": "the tests of a store",
	"store/storetest.BenchLoad":   "measures the loads of a store",
	"store/storetest.EraseOf":     "the tests of a store",
	"store/storetest.Long":        "the tests of a store",
	"store/storetest.Rule":        "the tests of a store",
	"store/storetest.Run":         "the tests of a store",
	"store/storetest.RunArchive":  "the tests of a store",
	"store/storetest.RunControl":  "the tests of a store",
	"store/storetest.RunErase":    "the tests of a store",
	"store/storetest.Killed":      "the tests of a store",
	"store/storetest.KilledDoes":  "the tests of a store",
	"store/storetest.RunKilled":   "the tests of a store",
	"store/storetest.Said":        "the tests of a store",
	"store/storetest.Speak":       "the tests of a store",

	"explain.ByMargin":      "a measure among others, which callers compare with",
	"explain.NotReproduced": "a reason among others, which callers compare with",

	"strategies.AlignmentMargin": "a ready-made strategy, for programs that combine them",
	"strategies.Bayes":           "a ready-made strategy, for programs that combine them",
	"strategies.CheckExpression": "a ready-made strategy, for programs that combine them",
	"strategies.LastAvailable":   "a ready-made strategy, for programs that combine them",
	"strategies.Random":          "a ready-made strategy, for programs that combine them",
	"strategies.SessionContext":  "a ready-made strategy, for programs that combine them",

	"undertaking.ReadDump":       "where a command begins and ends an undertaking",
	"undertaking.RemoveWorktree": "where a command begins and ends an undertaking",

	"runner.CodeStaleQuestion": "a word of the log, for who reads it",
	"runner.CodeStaleRound":    "a word of the log, for who reads it",
	"runner.NoSaving":          "a word of the log, for who reads it",
	"runner.WhileCalibrating":  "a word of the log, for who reads it",
	"session.CodeGoal":         "a word of the log, for who reads it",
	"session.CodeNoPayload":    "a word of the log, for who reads it",
	"session.CodeNoProposals":  "a word of the log, for who reads it",
	"session.CodeNoQuorum":     "a word of the log, for who reads it",
	"session.CodeWithheld":     "a word of the log, for who reads it",
	"session.KindAdopted":      "a word of the log, for who reads it",
	"session.KindProbed":       "a word of the log, for who reads it",
	"session.KindRevealed":     "a word of the log, for who reads it",
}

// TestNames counts the exported names and says what each is for.
func TestNames(t *testing.T) {
	exported := map[string]bool{} // package.Name
	used := map[string]bool{}
	for _, s := range sources(t) {
		uses(s, used)
		if strings.Contains("/"+s.pkg+"/", "/internal/") || s.file.Name.Name == "main" { // nobody imports those
			continue
		}
		for _, d := range s.file.Decls {
			declared(s.pkg, d, exported, used)
		}
	}
	var idle []string
	for name := range exported {
		if !used[name] && offered[name] == "" && !strings.HasPrefix(name, "..") && !strings.HasPrefix(name, "agent.") { // the front door, and the protocol with agents, are for others
			idle = append(idle, name)
		}
	}
	slices.Sort(idle)
	for _, name := range idle {
		t.Errorf("%s is exported, and nobody outside its package needs it: make it private, or list it in offered with what it is for", name)
	}
	for name, why := range offered {
		if !exported[name] || used[name] {
			t.Errorf("%s is listed (%s), and is %s", name, why, map[bool]string{true: "used by now", false: "gone"}[used[name]])
		}
	}
	t.Logf("%d names", len(exported))
	if len(exported) > maxNames {
		t.Errorf("our packages export %d names, more than %d", len(exported), maxNames)
	}
}

// uses notes the names of our packages that a file takes from them.
func uses(s source, used map[string]bool) {
	packages := map[string]string{} // by the name they have in the file
	for _, i := range s.file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if path != module && !strings.HasPrefix(path, module+"/") {
			continue
		}
		p := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		packages[name] = p
		if p == "" {
			packages[name] = "."
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && packages[x.Name] != "" {
				used[packages[x.Name]+"."+sel.Sel.Name] = true
			}
		}
		return true
	})
}

// declared notes what a declaration exports, and what of its package one must know
// to use that: the types it takes and gives, and for a constant its own.
func declared(pkg string, d ast.Decl, exported, used map[string]bool) {
	need := func(n ast.Node) { typesNamed(pkg, n, used) }
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() {
			return
		}
		if d.Recv == nil {
			exported[pkg+"."+d.Name.Name] = true
		}
		need(d.Type)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					exported[pkg+"."+spec.Name.Name] = true
					need(spec.Type)
					if strings.HasSuffix(spec.Name.Name, "Error") { // callers may look for it
						used[pkg+"."+spec.Name.Name] = true
					}
				}
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					if n.IsExported() {
						exported[pkg+"."+n.Name] = true
					}
				}
			}
		}
		if d.Tok == token.CONST || d.Tok == token.VAR {
			together(pkg, d, used)
		}
	}
}

// typesNamed notes the exported types of a package that an expression of a type names, but
// not what is behind a member that is private.
func typesNamed(pkg string, n ast.Node, used map[string]bool) {
	fields := func(list *ast.FieldList, all bool) {
		if list == nil {
			return
		}
		for _, f := range list.List {
			if all || len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
				typesNamed(pkg, f.Type, used)
			}
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			fields(n.Params, true)
			fields(n.Results, true)
			return false
		case *ast.StructType:
			fields(n.Fields, false)
			return false
		case *ast.InterfaceType:
			fields(n.Methods, false)
			return false
		case *ast.SelectorExpr:
			return false // of another package
		case *ast.Ident:
			if n.IsExported() {
				used[pkg+"."+n.Name] = true
			}
		}
		return true
	})
}

// together notes what belongs to others: the values of an exported type, and errors,
// which callers compare with whether we do or not.
func together(pkg string, d *ast.GenDecl, used map[string]bool) {
	var typed bool
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		if v.Type != nil || len(v.Values) > 0 {
			x, ok := v.Type.(*ast.Ident)
			typed = ok && x.IsExported()
		}
		for _, n := range v.Names {
			if typed || d.Tok == token.VAR && strings.HasPrefix(n.Name, "Err") {
				used[pkg+"."+n.Name] = true
			}
		}
	}
}
