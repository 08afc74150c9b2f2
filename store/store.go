// Package store keeps sessions: in memory, or in a SQLite file.
//
// Both implement [session.Store] and pass the suite in package storetest.
package store
