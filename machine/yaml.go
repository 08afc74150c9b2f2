package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
)

// This is the only file that knows the YAML library. It is used to scan and to
// resolve tags; documents, duplicate keys, merges and the growth of aliases,
// which decoding into yaml.Node lets pass, are checked here.

func parseYAML(data []byte) (*node, error) {
	doc, second, err := scanYAML(data)
	switch {
	case err != nil:
		return nil, yamlFailure(data, err)
	case second != nil:
		return nil, &syntaxError{code: codeSyntax, message: "the file holds a second document", line: second.Line, col: second.Column, hint: "one machine, one file"}
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" { // it may stand behind the last line
		return &node{kind: nullNode, line: 1, col: 1}, nil
	}
	r := yamlReader{open: map[*yaml.Node]bool{}}
	return r.value(doc.Content[0], 1)
}

// scanYAML reads the first document of a file, and whether there is a second.
func scanYAML(data []byte) (doc, second *yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc, second = new(yaml.Node), new(yaml.Node)
	if err = decodeYAML(dec, doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if err = decodeYAML(dec, second); errors.Is(err, io.EOF) {
		return doc, nil, nil
	}
	return doc, second, err
}

// decodeYAML turns a panic of the library into an error: it has had several.
func decodeYAML(dec *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	return dec.Decode(into)
}

var yamlPlace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`) })

func yamlFailure(data []byte, err error) error {
	at := &syntaxError{code: codeSyntax, message: err.Error(), line: 1, col: 1}
	if m := yamlPlace().FindStringSubmatch(at.message); m != nil {
		at.message = m[2]
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			at.line = n
			return at
		}
	}
	at.line, at.col = yamlOrigin(data, err.Error())
	return at
}

// maxOrigin is how large a file may be, in bytes, to be scanned again and again.
const maxOrigin = 256 << 10

// yamlOrigin finds where the library fails with a message that does not say it:
// in the last of the fewest lines that fail alike, at the alias if it is one.
func yamlOrigin(data []byte, message string) (line, col int) {
	if len(data) > maxOrigin {
		return 1, 1
	}
	ends := []int{}
	for _, b := range yamlBreak().FindAllIndex(data, -1) {
		ends = append(ends, b[1])
	}
	ends = append(ends, len(data))
	i := sort.Search(len(ends)-1, func(i int) bool {
		_, _, err := scanYAML(data[:ends[i]])
		return err != nil && err.Error() == message
	})
	col = 1
	if m := yamlAlias().FindStringSubmatch(message); m != nil {
		last := data[:ends[i]]
		if i > 0 {
			last = last[ends[i-1]:]
		}
		if at := bytes.Index(last, []byte("*"+m[1])); at > 0 {
			col += utf8.RuneCount(last[:at])
		}
	}
	return i + 1, col
}

// yamlBreak is what ends a line: YAML has more of it than JSON.
var yamlBreak = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]") })

var yamlAlias = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: unknown anchor '(.*)' referenced$`) })

type yamlReader struct {
	growth growth
	open   map[*yaml.Node]bool // anchors being expanded
}

func (r *yamlReader) value(y *yaml.Node, depth int) (*node, error) {
	if y.Kind == yaml.AliasNode {
		return r.alias(y, depth)
	}
	n := &node{line: y.Line, col: y.Column, text: y.Value}
	if err := r.growth.add(n, depth, len(y.Value)); err != nil {
		return nil, err
	}
	switch tag := y.ShortTag(); {
	case y.Kind == yaml.MappingNode && tag == "!!map":
		return n, r.object(n, y, depth)
	case y.Kind == yaml.SequenceNode && tag == "!!seq":
		return n, r.array(n, y, depth)
	case y.Kind == yaml.ScalarNode:
		return n, yamlScalar(n, y)
	default:
		return nil, unsupportedTag(y)
	}
}

func unsupportedTag(y *yaml.Node) error {
	return yamlError(y, fmt.Sprintf("the tag %s is not supported", clip(y.ShortTag(), maxNameRunes)), "remove the tag")
}

func (r *yamlReader) array(n *node, y *yaml.Node, depth int) error {
	n.kind = arrayNode
	for _, c := range y.Content {
		item, err := r.value(c, depth+1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	return nil
}

func (r *yamlReader) alias(y *yaml.Node, depth int) (*node, error) {
	if r.open[y.Alias] {
		return nil, yamlError(y, fmt.Sprintf("the alias *%s contains itself", y.Value), "")
	}
	r.open[y.Alias] = true
	defer delete(r.open, y.Alias)
	n, err := r.value(y.Alias, depth)
	if err != nil {
		return nil, err
	}
	n.line, n.col = y.Line, y.Column
	return n, nil
}

func (r *yamlReader) object(n *node, y *yaml.Node, depth int) error {
	n.kind = objectNode
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		switch {
		case k.Kind != yaml.ScalarNode:
			return yamlError(k, "a key is not a plain text", "write the name of the member as text")
		case k.ShortTag() == "!!merge":
			return yamlError(k, "merge keys (<<) are not supported", "repeat the members, or use an alias for the whole value")
		}
		r.growth.bytes += len(k.Value)
		item, err := r.value(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		n.keys = append(n.keys, key{k.Value, k.Line, k.Column})
		n.items = append(n.items, item)
	}
	return nil
}

func yamlScalar(n *node, y *yaml.Node) error {
	switch y.ShortTag() {
	case "!!null":
		n.kind = nullNode
	case "!!bool":
		var b bool
		if err := y.Decode(&b); err != nil {
			return yamlError(y, fmt.Sprintf("%q is no boolean", clip(y.Value, 40)), "write true or false")
		}
		n.kind, n.text = boolNode, strconv.FormatBool(b)
	case "!!str", "!!timestamp":
		n.kind = stringNode
		if y.Style == 0 && exact.IsNumber(y.Value) { // the library takes it for text
			n.kind, n.bad = numberNode, tooLarge(y.Value)
		}
	case "!!int", "!!float":
		yamlNumber(n, y)
	default:
		return unsupportedTag(y)
	}
	return nil
}

// yamlNumber accepts the numbers JSON has as they are written, and the other
// forms of YAML by their value, but for leading zeros, which half the readers
// take for octal.
func yamlNumber(n *node, y *yaml.Node) {
	n.kind = numberNode
	var f float64
	switch err := y.Decode(&f); {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		n.bad = fmt.Sprintf("%s is not a finite number", clip(y.Value, 40))
	case exact.IsNumber(y.Value):
	case leadingZero().MatchString(y.Value):
		n.bad = fmt.Sprintf("the number %s begins with 0", clip(y.Value, 40))
	default:
		n.text = jsontext.FormatFloat(f)
	}
}

var leadingZero = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-+]?0_*[0-9]`) })

func yamlError(y *yaml.Node, message, hint string) error {
	return &syntaxError{code: codeSyntax, message: message, hint: hint, line: y.Line, col: y.Column}
}
