// Command pick picks logs: the fewest it can that hold every kind of event, every member
// and every word of the logs in its first file that are in none of the others.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
)

type logged struct {
	line  []byte
	parts map[string]bool
}

func main() {
	known := map[string]bool{}
	for _, file := range os.Args[2:] {
		for _, l := range read(file) {
			for p := range l.parts {
				known[p] = true
			}
		}
	}
	logs := read(os.Args[1])
	slices.SortStableFunc(logs, func(a, b logged) int { return len(a.line) - len(b.line) })
	picked := 0
	for {
		best, most := -1, 0.0
		for i, l := range logs {
			news := 0
			for p := range l.parts {
				if !known[p] {
					news++
				}
			}
			if worth := float64(news) / float64(len(l.line)+2000); news > 0 && worth > most {
				best, most = i, worth
			}
		}
		if best < 0 {
			break
		}
		for p := range logs[best].parts {
			known[p] = true
		}
		os.Stdout.Write(logs[best].line)
		fmt.Println()
		picked++
	}
	log.Printf("%d of %d logs hold %d parts", picked, len(logs), len(known))
}

func read(file string) (logs []logged) {
	data, err := os.ReadFile(file)
	must(err)
	if strings.HasSuffix(file, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(data))
		must(err)
		data, err = io.ReadAll(z)
		must(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<30)
	for lines.Scan() {
		l := logged{slices.Clone(lines.Bytes()), map[string]bool{}}
		var g struct {
			Records [][]struct {
				Kind string
				Data any
			}
		}
		must(json.Unmarshal(l.line, &g))
		for _, r := range g.Records {
			for _, e := range r {
				l.parts[e.Kind] = true
				parts(e.Kind, e.Data, l.parts)
			}
		}
		if len(l.line) < 500_000 { // a file that can be kept
			logs = append(logs, l)
		}
	}
	must(lines.Err())
	return logs
}

// parts adds the members of a value, and words, which may say which kind of thing it is.
func parts(at string, v any, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			here := at + "." + name
			if found[here] = true; name != "metaJson" && name != "specialist" && name != "context" {
				parts(here, member, found)
			}
		}
	case []any:
		for _, member := range v {
			parts(at, member, found)
		}
	case string:
		if len(v) < 24 && strings.ContainsAny(at[strings.LastIndexByte(at, '.')+1:], "cdkmrs") && strings.Trim(v, "abcdefghijklmnopqrstuvwxyz_-") == "" {
			found[at+"="+v] = true
		}
	case bool:
		found[fmt.Sprintf("%s=%t", at, v)] = true
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
