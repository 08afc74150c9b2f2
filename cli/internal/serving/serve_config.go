package serving

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/server"
)

// The settings of a server: a flag beats the environment, that beats the file of --config,
// and that beats what is so without a word. The file has the names of the flags, as JSON
// writes names (tlsCert for --tls-cert). SIGHUP has the file and that of the tokens read again:
// what may change while the server runs does, and what is wrong changes nothing.

// memberOf returns the name of a flag in the file.
func memberOf(flag string) string {
	words := strings.Split(flag, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// settings are the flags that the file may have.
func settings(sets ...*pflag.FlagSet) map[string]*pflag.Flag {
	known := map[string]*pflag.Flag{}
	for _, flags := range sets {
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Name != "config" && f.Name != "check" && f.Name != "help" {
				known[memberOf(f.Name)] = f
			}
		})
	}
	return known
}

// serveSettings are those of a command.
func serveSettings(cmd *cobra.Command) map[string]*pflag.Flag {
	known := settings(cmd.LocalNonPersistentFlags())
	known["store"] = cmd.InheritedFlags().Lookup("store")
	return known
}

// configure takes up what the environment and the file say where no flag does.
func (a *app) configure(f *serveFlags, cmd *cobra.Command) error {
	flags := cmd.Flags()
	if port := a.Env("DIALAI_PORT"); port != "" && !flags.Changed("listen") {
		if err := flags.Set("listen", "127.0.0.1:"+port); err != nil {
			return err
		}
	}
	if text := a.Env("DIALAI_CORS_ORIGINS"); text != "" && !flags.Changed("cors-origin") {
		for origin := range strings.SplitSeq(text, ",") {
			if err := flags.Set("cors-origin", strings.TrimSpace(origin)); err != nil {
				return err
			}
		}
	}
	if f.config == "" {
		return nil
	}
	return a.readConfig(f, serveSettings(cmd))
}

// readConfig sets the flags that the file has and nothing else has set, and what only it has.
func (a *app) readConfig(f *serveFlags, known map[string]*pflag.Flag) error {
	own := a.own(f)
	f.inFile = map[string]json.RawMessage{}
	data, err := a.ReadFile(f.config, files.ServerConfig)
	if err != nil {
		return err
	}
	return machine.ParseSection(f.config, data, packs.HoldsSecret, func(text []byte) (problems []machine.Problem) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil {
			return []machine.Problem{{Code: "bad-type", Message: "the settings of a server are an object"}}
		}
		names := slices.AppendSeq(slices.Sorted(maps.Keys(known)), maps.Keys(own))
		for _, name := range slices.Sorted(maps.Keys(members)) {
			at := machine.Problem{Path: "/" + machine.EscapePointer(name)}
			flag := known[name]
			if read := own[name]; read != nil {
				r := &section.Reader{}
				read(r)(at.Path, members[name])
				problems = append(problems, r.Problems...)
				f.inFile[name] = members[name]
				continue
			}
			if flag == nil {
				at.Code, at.Message, at.Hint = "unknown-field", fmt.Sprintf("a server has no setting %q", name), machine.DidYouMean(name, names)
				problems = append(problems, at)
				continue
			}
			texts, ok := textsOf(members[name], flag.Value.Type())
			if !ok {
				at.Code, at.Message = "bad-value", name+" is "+string(members[name])+", not "+kindsOfFlags[flag.Value.Type()]
				problems = append(problems, at)
				continue
			}
			if flag.Changed {
				continue
			}
			for _, text := range texts {
				if flag.Value.Set(text) != nil {
					at.Code, at.Message = "bad-value", fmt.Sprintf("%s is %s, not %s", name, members[name], kindsOfFlags[flag.Value.Type()])
					problems = append(problems, at)
				}
			}
		}
		return problems
	})
}

// kindsOfFlags are what flags of a type take.
var kindsOfFlags = map[string]string{"string": "a text", "stringArray": "a list of texts", "int": "a whole number", "float64": "a number", "duration": "a time such as 30s", "bool": "true or false", "json": "a list of {claim, value, role, machines}", "guards": "an object of names, each with a file"}

// oidcRoles are what claims of tokens are good for, as a flag and a setting.
type oidcRoles []server.OIDCRole

// Set takes a list as JSON.
func (r *oidcRoles) Set(text string) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	var list []server.OIDCRole
	if err := dec.Decode(&list); err != nil {
		return fmt.Errorf("not a list of roles: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	*r = list
	return nil
}

// String returns the list as JSON.
func (r *oidcRoles) String() string {
	if len(*r) == 0 {
		return ""
	}
	text, _ := json.Marshal(*r) // texts always can
	return string(text)
}

// Type names what it takes.
func (r *oidcRoles) Type() string { return "json" }

// textsOf returns a value as a flag of a type takes it.
func textsOf(value json.RawMessage, kind string) (texts []string, ok bool) {
	if kind == "json" || kind == "guards" {
		return []string{string(value)}, true
	}
	several := kind == "stringArray"
	var v any
	if json.Unmarshal(value, &v) != nil {
		return nil, false
	}
	list, isList := v.([]any)
	if isList != several {
		if !several {
			return nil, false
		}
		list = []any{v}
	}
	if !several {
		list = []any{v}
	}
	for _, one := range list {
		switch one := one.(type) {
		case string:
			texts = append(texts, one)
		case float64, bool:
			texts = append(texts, string(value))
		default:
			return nil, false
		}
	}
	return texts, true
}

// A ServingCheck is what --check prints.
type ServingCheck struct {
	V        int            `json:"v"`
	Kind     string         `json:"kind"` // "settings"
	Settings map[string]any `json:"settings"`
}

// tellSettings prints what the server would do.
func (a *app) tellSettings(f *serveFlags, cmd *cobra.Command) error {
	out := ServingCheck{V: 1, Kind: "settings", Settings: map[string]any{}}
	for name, flag := range serveSettings(cmd) {
		switch v := flag.Value.(type) {
		case pflag.SliceValue:
			out.Settings[name] = append([]string{}, v.GetSlice()...)
		default:
			out.Settings[name] = v.String()
		}
	}
	for name, member := range f.inFile {
		out.Settings[name] = member
	}
	if out.Settings["auth"] = f.auth; len(f.listen) == 0 {
		out.Settings["listen"] = []string{defaultListen}
	}
	for _, name := range []string{"DIALAI_API_TOKEN", "DIALAI_SERVER_KEY", clientSecret} {
		if a.Env(name) != "" {
			out.Settings[name] = "[set]"
		}
	}
	for _, name := range []string{tokensFile, "DIALAI_PUBLIC_URL"} {
		if text := a.Env(name); text != "" {
			out.Settings[name] = packs.Redact(text)
		}
	}
	if a.Flags.JSON {
		return render.JSON(a.Out, out)
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(out.Settings)) {
		text := strings.Trim(fmt.Sprint(out.Settings[name]), "[]")
		if member, ok := out.Settings[name].(json.RawMessage); ok {
			text = string(member)
		}
		rows = append(rows, []string{name, text})
	}
	return render.Table(a.Out, rows)
}

// A reloading is what a server takes up anew when it is told to (SIGHUP).
type reloading struct {
	app    *app
	given  *pflag.FlagSet // what the command was called with
	config string
	tokens *server.Tokens // nil if there is no file of them
	level  *slog.LevelVar
	log    *slog.Logger
}

// again reads the files again. What is wrong in one changes nothing of it, and is logged.
func (r *reloading) again(web *server.Server) {
	if r.tokens != nil {
		if keys, err := r.app.readTokens(r.app.Env(tokensFile)); err != nil {
			r.log.Error("the tokens stay as they were", "error", packs.Redact(err.Error()))
		} else {
			r.tokens.Set(keys)
		}
	}
	if r.config == "" {
		return
	}
	f, flags := &serveFlags{config: r.config}, pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.register(flags)
	flags.String("store", "", "") // which cannot change, and may be in the file
	r.given.Visit(func(g *pflag.Flag) {
		if flags.Lookup(g.Name) != nil && g.Value.Type() != "stringArray" {
			_ = flags.Set(g.Name, g.Value.String()) // it was taken once
		}
	})
	if err := cmp.Or(r.app.readConfig(f, settings(flags)), f.check()); err != nil {
		r.log.Error("the settings stay as they were", "error", packs.Redact(err.Error()))
		return
	}
	web.SetRates(f.rates)
	_ = r.level.UnmarshalText([]byte(f.logLevel)) // it was checked
	r.log.Info("settings and tokens were read again")
}
