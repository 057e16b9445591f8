// As asyncio_server.py, in Go: http PORT FOLDER.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
)

func main() {
	folder := os.Args[2]
	http.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		if request.Method == "GET" {
			content, err := os.ReadFile(filepath.Join(folder, path.Base(request.URL.Path)))
			if err != nil {
				http.NotFound(answer, request)
				return
			}
			answer.Header().Set("X-Digest", fmt.Sprintf("%x", sha256.Sum256(content)))
			answer.Write(content)
			return
		}
		digest := sha256.New()
		io.Copy(digest, request.Body)
		fmt.Fprintf(answer, "%x", digest.Sum(nil))
	})
	err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
