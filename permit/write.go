package permit

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
)

// Editing tools name files in three ways: one in a member, several as members of changes, or
// in the headers of a patch. A prompt that names none in a way that is known names some that
// nobody knows.

// write looks at an editing tool.
func (l *look) write() string {
	files, deleted, ok := l.edited()
	if !ok || l.unread {
		l.unread = true
		return kindWrite
	}
	l.names(files...)
	if root := l.input.Get("grantRoot"); len(root) > 0 && string(root) != "null" {
		l.inside = false // asks for more than these files
	}
	for _, f := range deleted {
		if !l.paths.removable(word{text: f, known: true}) {
			return kindDangerous
		}
	}
	return kindWrite
}

// edited returns the files that an editing tool changes, and which of them it deletes.
func (l *look) edited() (files, deleted []string, ok bool) {
	for _, m := range l.input.Members() {
		switch m.Name {
		case "file_path", "notebook_path", "path", "filePath":
			f, isText := l.text(m.Name)
			if !isText {
				return nil, nil, false
			}
			files = append(files, f)
		case "input", "patch", "command":
			text, isText := patchText(m.Value)
			if !isText {
				return nil, nil, false
			}
			named, gone := patched(text)
			if len(named) == 0 {
				return nil, nil, false
			}
			files, deleted = append(files, named...), append(deleted, gone...)
		case "changes", "fileChanges":
			named, gone, isList := changed(m.Value)
			if !isList {
				return nil, nil, false
			}
			files, deleted = append(files, named...), append(deleted, gone...)
		}
	}
	return files, deleted, len(files) > 0 && !slices.Contains(files, "")
}

// patchText returns a patch that is a text, or the last argument of a command.
func patchText(value json.RawMessage) (s string, ok bool) {
	var argv []string
	if json.Unmarshal(value, &argv) == nil && len(argv) > 0 {
		return argv[len(argv)-1], true
	}
	return s, json.Unmarshal(value, &s) == nil
}

// patched returns the files that the headers of a patch name.
func patched(text string) (files, deleted []string) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, header := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if f, ok := strings.CutPrefix(strings.TrimSpace(line), header); ok {
				files = append(files, f)
				if strings.Contains(header, "Delete") {
					deleted = append(deleted, f)
				}
			}
		}
	}
	return files, deleted
}

// changed returns the files of a list of changes, or of an object whose members they are.
func changed(value json.RawMessage) (files, deleted []string, ok bool) {
	add := func(file string, change json.RawMessage) {
		o := jsontext.ReadObject(change)
		files = append(files, file)
		if kind := o.Get("kind"); strings.Contains(string(kind), `"delete"`) || strings.Contains(string(o.Get("type")), `"delete"`) || o.Has("delete") {
			deleted = append(deleted, file)
		}
		for _, to := range []string{"move_path", "movePath"} {
			for _, from := range []jsontext.Object{o, jsontext.ReadObject(o.Get("update")), jsontext.ReadObject(o.Get("kind"))} {
				var moved string
				if json.Unmarshal(from.Get(to), &moved) == nil && moved != "" {
					files = append(files, moved)
				}
			}
		}
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		for _, change := range list {
			var path string
			if json.Unmarshal(jsontext.ReadObject(change).Get("path"), &path) != nil {
				return nil, nil, false
			}
			add(path, change)
		}
		return files, deleted, true
	}
	for _, m := range jsontext.ReadObject(value).Members() {
		add(m.Name, m.Value)
	}
	return files, deleted, len(files) > 0
}
