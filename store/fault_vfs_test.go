//go:build linux

package store_test

import (
	"os"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// A disk is what SQLite's own way to the operating system goes through in a test: it
// counts the operations on files, fails one of them, and may lose what was not synced.
// It is registered with SQLite under its name.
type disk struct {
	name string
	tls  *libc.TLS
	unix uintptr // *sqlite3.Tsqlite3_vfs, as is own
	own  uintptr

	mu      sync.Mutex
	n       int    // operations so far
	failAt  int    // the operation to fail; 0 for none
	dead    bool   // every operation fails: the process has crashed
	crash   bool   // die when an operation fails
	torn    bool   // write half of what fails to be written
	full    bool   // from that operation on nothing can be written, all else goes on
	failed  string // the operation that failed
	before  func(op, path string)
	files   map[uintptr]*diskFile // by sqlite3_file
	undo    []write               // what was not synced, the oldest first
	methods map[uintptr]uintptr   // ours by SQLite's
}

type diskFile struct {
	path    string
	methods uintptr // of SQLite
}

// A write is what a file held where it was written to.
type write struct {
	path string
	at   int64
	old  []byte
	size int64 // of the file before
}

func vfsOf(p uintptr) *sqlite3.Tsqlite3_vfs { return *(**sqlite3.Tsqlite3_vfs)(unsafe.Pointer(&p)) }

func methodsOf(p uintptr) *sqlite3.Tsqlite3_io_methods {
	return *(**sqlite3.Tsqlite3_io_methods)(unsafe.Pointer(&p))
}

// kept are the functions that only SQLite refers to.
var kept sync.Map

// pointer returns a Go function as SQLite calls it.
func pointer[F any](f F) uintptr {
	p := *(*uintptr)(unsafe.Pointer(&f))
	kept.Store(p, f)
	return p
}

// function returns a function of SQLite as Go calls it.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

type (
	openFn     = func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32
	deleteFn   = func(*libc.TLS, uintptr, uintptr, int32) int32
	accessFn   = func(*libc.TLS, uintptr, uintptr, int32, uintptr) int32
	closeFn    = func(*libc.TLS, uintptr) int32
	transferFn = func(*libc.TLS, uintptr, uintptr, int32, int64) int32
	truncateFn = func(*libc.TLS, uintptr, int64) int32
	syncFn     = func(*libc.TLS, uintptr, int32) int32
	sizeFn     = func(*libc.TLS, uintptr, uintptr) int32
	shmMapFn   = func(*libc.TLS, uintptr, int32, int32, int32, uintptr) int32
)

func newDisk(t *testing.T, name string) *disk {
	tls := libc.NewTLS()
	d := &disk{name: name, tls: tls, unix: sqlite3.Xsqlite3_vfs_find(tls, 0), files: map[uintptr]*diskFile{}, methods: map[uintptr]uintptr{}}
	cname, err := libc.CString(name)
	if err != nil {
		t.Fatal(err)
	}
	own := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	v := vfsOf(own)
	*v = *vfsOf(d.unix)
	v.FpNext, v.FzName = 0, cname
	d.own = own
	v.FxOpen, v.FxDelete, v.FxAccess = pointer[openFn](d.open), pointer[deleteFn](d.delete), pointer[accessFn](d.access)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, own, 0); rc != 0 {
		t.Fatalf("registering: %d", rc)
	}
	t.Cleanup(func() { sqlite3.Xsqlite3_vfs_unregister(tls, own) })
	return d
}

// reset begins a new life.
func (d *disk) reset(failAt int, crash, torn bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n, d.failAt, d.crash, d.torn, d.full, d.dead, d.failed, d.undo, d.before = 0, failAt, crash, torn, false, false, "", nil, nil
}

// fails counts an operation and reports whether it fails.
func (d *disk) fails(op, path string) bool {
	d.mu.Lock()
	before := d.before
	d.n++
	fails := d.dead
	switch {
	case d.full:
		if fails = op == "write" && d.failAt > 0 && d.n >= d.failAt; fails {
			d.failed = op
		}
	case d.n == d.failAt:
		fails, d.failed, d.dead = true, op, d.crash
	}
	d.mu.Unlock()
	if before != nil {
		before(op, path)
	}
	return fails
}

func (d *disk) open(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	path := libc.GoString(name)
	if d.fails("open", path) {
		methods := *(**sqlite3.Tsqlite3_file)(unsafe.Pointer(&file))
		methods.FpMethods = 0
		return sqlite3.SQLITE_CANTOPEN
	}
	rc := function[openFn](vfsOf(d.unix).FxOpen)(tls, d.unix, name, file, flags, out)
	if rc != 0 {
		return rc
	}
	f := *(**sqlite3.Tsqlite3_file)(unsafe.Pointer(&file))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[file] = &diskFile{path, f.FpMethods}
	f.FpMethods = d.wrap(f.FpMethods)
	return 0
}

// wrap returns a table of methods that goes through the disk.
func (d *disk) wrap(theirs uintptr) uintptr {
	if own, ok := d.methods[theirs]; ok {
		return own
	}
	own := libc.Xmalloc(d.tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	m := methodsOf(own)
	*m = *methodsOf(theirs)
	m.FiVersion = 2 // no mapping into memory
	m.FxClose, m.FxRead, m.FxWrite = pointer[closeFn](d.close), pointer[transferFn](d.read), pointer[transferFn](d.write)
	m.FxTruncate, m.FxSync, m.FxFileSize = pointer[truncateFn](d.truncate), pointer[syncFn](d.sync), pointer[sizeFn](d.size)
	m.FxShmMap = pointer[shmMapFn](d.shmMap)
	d.methods[theirs] = own
	return own
}

func (d *disk) file(p uintptr) (*diskFile, *sqlite3.Tsqlite3_io_methods) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[p]
	return f, methodsOf(f.methods)
}

func (d *disk) close(tls *libc.TLS, p uintptr) int32 {
	_, m := d.file(p)
	return function[closeFn](m.FxClose)(tls, p)
}

func (d *disk) read(tls *libc.TLS, p, into uintptr, n int32, at int64) int32 {
	f, m := d.file(p)
	if d.fails("read", f.path) {
		return sqlite3.SQLITE_IOERR_READ
	}
	return function[transferFn](m.FxRead)(tls, p, into, n, at)
}

func (d *disk) write(tls *libc.TLS, p, from uintptr, n int32, at int64) int32 {
	f, m := d.file(p)
	fails := d.fails("write", f.path)
	if !fails || d.torn {
		d.remember(tls, p, f, at, n)
	}
	if fails && d.torn && d.failed == "write" {
		function[transferFn](m.FxWrite)(tls, p, from, n/2, at)
		d.mu.Lock()
		d.torn = false
		d.mu.Unlock()
	}
	if fails && d.full {
		return sqlite3.SQLITE_FULL
	}
	if fails {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	return function[transferFn](m.FxWrite)(tls, p, from, n, at)
}

// remember keeps what a write is going to change, until the file is synced.
func (d *disk) remember(tls *libc.TLS, p uintptr, f *diskFile, at int64, n int32) {
	m := methodsOf(f.methods)
	buffer, size := libc.Xmalloc(tls, libc.Tsize_t(n)), libc.Xmalloc(tls, 8)
	defer libc.Xfree(tls, buffer)
	defer libc.Xfree(tls, size)
	function[sizeFn](m.FxFileSize)(tls, p, size)
	function[transferFn](m.FxRead)(tls, p, buffer, n, at)
	w := write{path: f.path, at: at, size: **(**int64)(unsafe.Pointer(&size))}
	w.old = append(w.old, unsafe.Slice(*(**byte)(unsafe.Pointer(&buffer)), n)...)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.undo = append(d.undo, w)
}

// lose undoes writes that were not synced, those for which keep is false, the newest
// first. The store must be closed.
func (d *disk) lose(keep func() bool) error {
	for i := len(d.undo) - 1; i >= 0; i-- {
		w := d.undo[i]
		if keep() {
			continue
		}
		f, err := os.OpenFile(w.path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if _, err = f.WriteAt(w.old, w.at); err == nil && w.size < w.at+int64(len(w.old)) && i == d.first(w.path) {
			err = f.Truncate(max(w.size, 0))
		}
		if f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// first returns the oldest write to a file that was not synced.
func (d *disk) first(path string) int {
	return slices.IndexFunc(d.undo, func(w write) bool { return w.path == path })
}

func (d *disk) truncate(tls *libc.TLS, p uintptr, size int64) int32 {
	f, m := d.file(p)
	if d.fails("truncate", f.path) {
		return sqlite3.SQLITE_IOERR_TRUNCATE
	}
	return function[truncateFn](m.FxTruncate)(tls, p, size)
}

// sync only counts: nothing here is about the disk under the test.
func (d *disk) sync(_ *libc.TLS, p uintptr, _ int32) int32 {
	f, _ := d.file(p)
	if d.fails("sync", f.path) {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.undo = slices.DeleteFunc(d.undo, func(w write) bool { return w.path == f.path })
	return 0
}

func (d *disk) size(tls *libc.TLS, p, into uintptr) int32 {
	f, m := d.file(p)
	if d.fails("size", f.path) {
		return sqlite3.SQLITE_IOERR_FSTAT
	}
	return function[sizeFn](m.FxFileSize)(tls, p, into)
}

func (d *disk) shmMap(tls *libc.TLS, p uintptr, region, size, extend int32, out uintptr) int32 {
	f, m := d.file(p)
	if d.fails("map", f.path) {
		return sqlite3.SQLITE_IOERR_SHMMAP
	}
	return function[shmMapFn](m.FxShmMap)(tls, p, region, size, extend, out)
}

func (d *disk) delete(tls *libc.TLS, _, name uintptr, dir int32) int32 {
	if d.fails("delete", libc.GoString(name)) {
		return sqlite3.SQLITE_IOERR_DELETE
	}
	return function[deleteFn](vfsOf(d.unix).FxDelete)(tls, d.unix, name, dir)
}

func (d *disk) access(tls *libc.TLS, _, name uintptr, flags int32, out uintptr) int32 {
	if d.fails("access", libc.GoString(name)) {
		return sqlite3.SQLITE_IOERR_ACCESS
	}
	return function[accessFn](vfsOf(d.unix).FxAccess)(tls, d.unix, name, flags, out)
}
