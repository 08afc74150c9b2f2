// Command make writes a dictionary for records, of those of the logs that it is given
// (session/testdata/golden): of all events, and records as a whole, the one that makes the others
// smallest, then the one that does so beside it, until 4 KiB are full. What is another one in each record
// (times, ids, hashes) is left out. What it took first stands last.
//
//	go run store/internal/pack/testdata/make.go session/testdata/golden/*.jsonl.gz >store/internal/pack/N.dict
package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"log"
	"os"
	"regexp"
	"slices"

	"github.com/klauspost/compress/s2"
)

const (
	most = 4096 // bytes of a dictionary
	each = 6    // records of a log: long ones are not to outweigh the others
)

var volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\d{2,}`)

func main() {
	records := read(os.Args[1:])
	var parts [][]byte
	seen := map[string]bool{}
	add := func(part []byte) {
		if p := volatile.ReplaceAll(part, nil); len(p) > 32 && len(p) < most/2 && !seen[string(p)] {
			seen[string(p)] = true
			parts = append(parts, p)
		}
	}
	for _, r := range records {
		var events []json.RawMessage
		if err := json.Unmarshal(r, &events); err != nil {
			log.Fatal(err)
		}
		add(r)
		for _, e := range events {
			add(e)
		}
	}
	size := func(dict []byte) (n int) {
		encode := s2.Encode
		if dict != nil {
			encode = s2.MakeDictManual(dict, 0).Encode
		}
		for i := 0; i < len(records); i += 3 {
			n += len(encode(nil, records[i]))
		}
		return n
	}
	var dict []byte
	for {
		before := size(dict)
		var best []byte
		gained := 0.0
		for _, p := range parts {
			if len(p)+len(dict) > most {
				continue
			}
			if g := float64(before-size(slices.Concat(p, dict))) / float64(len(p)+64); g > gained {
				best, gained = p, g
			}
		}
		if best == nil {
			break
		}
		dict = slices.Concat(best, dict)
		log.Printf("%d bytes, %d of records", len(dict), size(dict))
	}
	os.Stdout.Write(dict)
}

func read(files []string) (records [][]byte) {
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			log.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			log.Fatal(err)
		}
		lines := bufio.NewScanner(z)
		lines.Buffer(nil, 1<<26)
		for lines.Scan() {
			var of struct{ Records []json.RawMessage }
			if json.Unmarshal(lines.Bytes(), &of) != nil { // of a machine's log
				continue
			}
			for i, r := range of.Records {
				if i < each && len(r) < 1<<14 {
					records = append(records, r)
				}
			}
		}
		if err := lines.Err(); err != nil {
			log.Fatal(err)
		}
	}
	return records
}
