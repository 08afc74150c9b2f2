//go:build !race

package store_test

const fewer = 1
