package requests

import (
	"encoding/json"
	"fmt"

	"github.com/servegrid/servegrid/simcore"
)

// AppendJSON appends a record as a JSON object and a line end.
func AppendJSON(b []byte, columns []Column, record *simcore.RequestRecord) ([]byte, error) {
	for i, c := range columns {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		b = append(append(append(b, separator, '"'), c.Name...), '"', ':')
		v, ok := c.Value(record)
		if !ok {
			b = append(b, "null"...)
			continue
		}
		text, err := json.Marshal(v.Any())
		if err != nil {
			return nil, fmt.Errorf("%s of request %d: %w", c.Name, record.Request, err)
		}
		b = append(b, text...)
	}
	return append(b, '}', '\n'), nil
}
