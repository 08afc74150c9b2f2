//go:build !race

package transfer_test

const fewer = 1
